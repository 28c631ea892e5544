import { lastFrameEnd } from './sse.js'

/** Upstreams say that they are finished within their last few frames. */
const TAIL_BYTES = 4096

/** So much is collected before it is cut down to a tail again: small regions are copied once or twice, not every time. */
const COLLECTED_BYTES = 2 * TAIL_BYTES

const NOTHING = Buffer.alloc(0)

/**
 * The end of an event stream so far: its last frame whole, however large, and at least what stands before it within
 * 4 KiB. Marks of completion are looked for here, once, when the stream is over, and not in every chunk that passes.
 */
export class StreamTail {
  /** Of its own: a view would keep whole regions alive, in every open stream. */
  private memory: Buffer = NOTHING
  private length = 0

  /** Begins with a whole line. */
  get bytes(): Buffer {
    return this.memory.subarray(0, this.length)
  }

  /** Adds a region of whole frames. */
  add(region: Buffer): void {
    if (region.length >= TAIL_BYTES) {
      this.hold(fromLine(region, Math.min(region.length - TAIL_BYTES, lastFrameStart(region))))
      return
    }
    if (this.length + region.length > COLLECTED_BYTES) this.hold(fromLine(this.bytes, this.length - TAIL_BYTES))
    else if (this.memory.length === 0) this.hold(NOTHING)
    region.copy(this.memory, this.length)
    this.length += region.length
  }

  /** These bytes and no others, which may be part of what is held already. */
  private hold(bytes: Buffer): void {
    const isRoom = this.memory.length === COLLECTED_BYTES && bytes.length <= COLLECTED_BYTES
    const memory = isRoom ? this.memory : Buffer.allocUnsafeSlow(Math.max(COLLECTED_BYTES, bytes.length))
    bytes.copy(memory)
    this.memory = memory
    this.length = bytes.length
  }
}

const lastFrameStart = (bytes: Buffer): number => lastFrameEnd(bytes.subarray(0, -1))

/** Marks count at the beginning of a line only, so that the tail must not begin in the middle of one. */
const fromLine = (bytes: Buffer, position: number): Buffer =>
  position <= 0 ? bytes : bytes.subarray(bytes.indexOf(0x0a, position - 1) + 1)
