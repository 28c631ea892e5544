import type { ByteSink, ByteSource } from '../../src/core/byte-stream.js'
import { callerWithOwnBearer } from '../../src/core/caller.js'
import type { GatewayError } from '../../src/core/errors.js'
import type { MemoryHolder } from '../../src/overload/memory-budget.js'

/** A call with a key that the gateway knows. */
export const callOf = (keyId: string): MemoryHolder => ({ caller: { keyId }, heldBytes: 0, isOver: false })

/** A call with a key that the gateway does not know: one id for all of them. */
export const strangerOf = (bearer: string): MemoryHolder => ({
  caller: callerWithOwnBearer(bearer),
  heldBytes: 0,
  isOver: false,
})

/** The beginning of a PNG: everything a header reader needs, and nothing an image has. */
export function pngHeader(width: number, height: number): Buffer {
  const bytes = Buffer.alloc(33)
  bytes.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
  bytes.writeUInt32BE(13, 8)
  bytes.write('IHDR', 12, 'latin1')
  bytes.writeUInt32BE(width, 16)
  bytes.writeUInt32BE(height, 20)
  bytes.set([8, 2, 0, 0, 0], 24)
  return bytes
}

/** A JPEG segment with its marker and length. */
export function jpegSegment(code: number, content: Buffer): Buffer {
  const head = Buffer.from([0xff, code, 0, 0])
  head.writeUInt16BE(content.length + 2, 2)
  return Buffer.concat([head, content])
}

/** The beginning of a JPEG: the segments given, then the frame header. */
export function jpegHeader(width: number, height: number, before: readonly Buffer[] = [], frame = 0xc0): Buffer {
  const content = Buffer.from([8, 0, 0, 0, 0, 3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1])
  content.writeUInt16BE(height, 1)
  content.writeUInt16BE(width, 3)
  return Buffer.concat([Buffer.from([0xff, 0xd8]), ...before, jpegSegment(frame, content)])
}

export const pngText = (width = 300, height = 300): string => pngHeader(width, height).toString('base64')

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

  /** Whether its reader needs what is still to come although the caller has left. */
  readOn(): boolean {
    return this.started.readOn?.() === true
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
