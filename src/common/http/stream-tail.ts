import { lastFrameEnd } from './sse-frames.js'

/** Upstreams say that they are finished within their last few frames. */
const TAIL_BYTES = 4096

/**
 * The end of an event stream so far: its last frame whole, however large, and what stands before it within 4 KiB.
 * Marks of completion are looked for here, once, when the stream is over, and not in every chunk that passes.
 */
export class StreamTail {
  private kept: Buffer = Buffer.alloc(0)

  get bytes(): Buffer {
    return this.kept
  }

  /** Adds a region of whole frames. */
  add(region: Buffer): void {
    const bytes = region.length < TAIL_BYTES && this.kept.length > 0 ? Buffer.concat([this.kept, region]) : region
    const start = Math.max(0, Math.min(bytes.length - TAIL_BYTES, lastFrameStart(bytes)))
    // A copy: a view would keep the whole region alive, in every open stream.
    this.kept = bytes === region || start > 0 ? Buffer.from(bytes.subarray(lineStart(bytes, start))) : bytes
  }
}

const lastFrameStart = (bytes: Buffer): number => lastFrameEnd(bytes.subarray(0, -1))

/** Marks count at the beginning of a line only, so that the tail must not begin in the middle of one. */
const lineStart = (bytes: Buffer, position: number): number =>
  position === 0 ? 0 : bytes.indexOf(0x0a, position - 1) + 1
