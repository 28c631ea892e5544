import type { ByteSink, ByteSource } from '../../core/byte-source.js'
import type { GatewayError } from '../../core/gateway-error.js'

/** A body of which so many bytes were announced elsewhere: one that ends before them was cut off, however politely. */
export class MeasuredSource implements ByteSource, ByteSink {
  private sink!: ByteSink
  private receivedBytes = 0

  constructor(
    private readonly body: ByteSource,
    private readonly leastBytes: number,
    private readonly tooShort: (receivedBytes: number) => GatewayError,
  ) {}

  start(sink: ByteSink): void {
    this.sink = sink
    this.body.start(this)
  }

  pause(): void {
    this.body.pause()
  }

  resume(): void {
    this.body.resume()
  }

  cancel(): void {
    this.body.cancel()
  }

  data(chunk: Buffer): void {
    this.receivedBytes += chunk.length
    this.sink.data(chunk)
  }

  end(): void {
    if (this.receivedBytes < this.leastBytes) this.sink.fail(this.tooShort(this.receivedBytes))
    else this.sink.end()
  }

  fail(error: GatewayError): void {
    this.sink.fail(error)
  }
}
