/**
 * What travels between the gateway and an engine, in both directions over one pipe: eight bytes that say how long head
 * and payload are, the head as JSON, and the payload as it is.
 */
export interface Frame {
  readonly head: unknown
  readonly payload: Buffer
}

/** In bytes; a frame that declares more is a fault, found before anything of it is kept. */
interface FrameLimits {
  readonly headBytes: number
  readonly payloadBytes: number
}

/** What came is no frame, or too long a one; nothing after it can be understood. */
export class FrameFault extends Error {
  override readonly name = 'FrameFault'
}

const PREFIX_BYTES = 8
const PAYLOAD_LENGTH_AT = 4

/** Everything of a frame that stands before its payload. */
export function frameStart(head: object, payloadBytes: number): Buffer {
  const text = Buffer.from(JSON.stringify(head))
  const prefix = Buffer.alloc(PREFIX_BYTES)
  prefix.writeUInt32BE(text.length)
  prefix.writeUInt32BE(payloadBytes, PAYLOAD_LENGTH_AT)
  return Buffer.concat([prefix, text])
}

type Expected = 'prefix' | 'head' | 'payload'

/** Puts frames together from pieces of any size; the payload is copied once, into a buffer of its own length. */
export class FrameReader {
  private expected: Expected = 'prefix'
  private target = Buffer.alloc(PREFIX_BYTES)
  private filled = 0
  private payloadBytes = 0
  private head: unknown

  /** `limits` is asked once per frame. */
  constructor(
    private readonly limits: () => FrameLimits,
    private readonly onFrame: (frame: Frame) => void,
  ) {}

  /** Throws a `FrameFault`; the reader is of no use afterwards. */
  push(chunk: Buffer): void {
    let offset = 0
    while (offset < chunk.length) {
      const copied = chunk.copy(this.target, this.filled, offset)
      offset += copied
      this.filled += copied
      // A head or a payload may be empty: then its turn is over before a byte of it came.
      while (this.filled === this.target.length) this.advance()
    }
  }

  private advance(): void {
    const done = this.target
    if (this.expected === 'prefix') this.readPrefix(done)
    else if (this.expected === 'head') this.readHead(done)
    else this.readPayload(done)
  }

  private readPrefix(prefix: Buffer): void {
    const headBytes = prefix.readUInt32BE()
    this.payloadBytes = prefix.readUInt32BE(PAYLOAD_LENGTH_AT)
    const limits = this.limits()
    if (headBytes > limits.headBytes || this.payloadBytes > limits.payloadBytes) {
      throw new FrameFault(`a frame declares ${headBytes} and ${this.payloadBytes} bytes`)
    }
    this.expect('head', headBytes)
  }

  private readHead(text: Buffer): void {
    try {
      this.head = JSON.parse(text.toString())
    } catch (cause) {
      throw new FrameFault('the head of a frame is not JSON', { cause })
    }
    this.expect('payload', this.payloadBytes)
  }

  private readPayload(payload: Buffer): void {
    this.expect('prefix', PREFIX_BYTES)
    this.onFrame({ head: this.head, payload })
  }

  private expect(expected: Expected, bytes: number): void {
    this.expected = expected
    this.filled = 0
    // Not from the pool of small buffers: readers may hand the memory behind it on.
    this.target = Buffer.allocUnsafeSlow(bytes)
  }
}
