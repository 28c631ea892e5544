import type { ByteSink, ByteSource } from '../core/byte-source.js'

/** A body that is at hand already, for those who read bodies as they come. */
export class BytesSource implements ByteSource {
  constructor(readonly complete: Buffer) {}

  start(sink: ByteSink): void {
    sink.data(this.complete)
    sink.end()
  }

  pause(): void {
    // Everything was delivered at once.
  }

  resume(): void {
    // Nothing waits.
  }

  cancel(): void {
    // Nothing is held.
  }
}
