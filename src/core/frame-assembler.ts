import { lastFrameEnd } from './sse.js'

/** An empty line may begin in one chunk and end in the next. */
const OVERLAP_BYTES = 3

/** Collects chunks until they hold whole frames; looks at each byte once, however many chunks a frame comes in. */
export class FrameAssembler {
  private waiting: Buffer[] = []
  private bytesWaiting = 0

  /** Bytes of the frame that has begun and not ended. */
  get waitingBytes(): number {
    return this.bytesWaiting
  }

  /** Everything up to the end of the last whole frame, or undefined when none has ended. */
  add(chunk: Buffer): Buffer | undefined {
    if (this.bytesWaiting === 0) return this.split(chunk, lastFrameEnd(chunk))
    const overlap = Math.min(OVERLAP_BYTES, this.bytesWaiting)
    const end = lastFrameEnd(Buffer.concat([this.lastBytes(overlap), chunk]))
    this.waiting.push(chunk)
    this.bytesWaiting += chunk.length
    if (end === 0) return undefined
    const position = this.bytesWaiting - chunk.length - overlap + end
    return this.split(this.takeRest(), position)
  }

  /** What waits for the end of its frame; afterwards nothing does. */
  takeRest(): Buffer {
    const rest = Buffer.concat(this.waiting, this.bytesWaiting)
    this.waiting = []
    this.bytesWaiting = 0
    return rest
  }

  private split(bytes: Buffer, end: number): Buffer | undefined {
    if (end < bytes.length) {
      this.waiting = [bytes.subarray(end)]
      this.bytesWaiting = bytes.length - end
    }
    return end === 0 ? undefined : bytes.subarray(0, end)
  }

  private lastBytes(count: number): Buffer {
    const pieces: Buffer[] = []
    for (let index = this.waiting.length - 1, missing = count; missing > 0 && index >= 0; index--) {
      const piece = this.waiting[index]?.subarray(-missing) ?? Buffer.alloc(0)
      pieces.unshift(piece)
      missing -= piece.length
    }
    return Buffer.concat(pieces)
  }
}
