import type { ByteSink, ByteSource } from '../../src/core/byte-source.js'
import type { GatewayError } from '../../src/core/gateway-error.js'

/** A source that a test drives by hand, and that remembers what was asked of it. */
export class ManualSource implements ByteSource {
  readonly asked: ('pause' | 'resume' | 'cancel')[] = []
  private sink: ByteSink | undefined

  start(sink: ByteSink): void {
    this.sink = sink
  }

  pause(): void {
    this.asked.push('pause')
  }

  resume(): void {
    this.asked.push('resume')
  }

  cancel(): void {
    this.asked.push('cancel')
  }

  get isStarted(): boolean {
    return this.sink !== undefined
  }

  data(...chunks: (string | Buffer)[]): void {
    for (const chunk of chunks) this.started.data(Buffer.from(chunk))
  }

  end(): void {
    this.started.end()
  }

  fail(error: GatewayError): void {
    this.started.fail(error)
  }

  private get started(): ByteSink {
    if (this.sink === undefined) throw new Error('the source was not started')
    return this.sink
  }
}

/** Remembers everything it receives, and throws when something comes after the end. */
export class RecordingSink implements ByteSink {
  readonly chunks: Buffer[] = []
  ending: 'end' | GatewayError | undefined

  data(chunk: Buffer): void {
    this.assertOpen()
    this.chunks.push(chunk)
  }

  end(): void {
    this.assertOpen()
    this.ending = 'end'
  }

  fail(error: GatewayError): void {
    this.assertOpen()
    this.ending = error
  }

  get text(): string {
    return Buffer.concat(this.chunks).toString()
  }

  /** The kind of the failure the stream ended with. */
  get failure(): string | undefined {
    return this.ending === undefined || this.ending === 'end' ? undefined : this.ending.kind
  }

  private assertOpen(): void {
    if (this.ending !== undefined) throw new Error('something came after the end')
  }
}

/** The bytes cut at the given positions (in any order, repeated or out of range ones count for nothing). */
export function piecesOf(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const positions = [...new Set([0, ...cuts.filter((cut) => cut > 0 && cut < bytes.length), bytes.length])]
  positions.sort((a, b) => a - b)
  return positions.slice(1).map((end, index) => bytes.subarray(positions[index], end))
}
