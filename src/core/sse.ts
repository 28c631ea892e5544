const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20
const TAB = 0x09

/**
 * The position behind the last complete frame in the bytes, or 0. A frame ends with an empty line: LF LF, CRLF CRLF,
 * or a mix of the two.
 */
export function lastFrameEnd(bytes: Buffer): number {
  for (let end = bytes.lastIndexOf(LF); end > 0; end = bytes.lastIndexOf(LF, end - 1)) {
    if (isEmptyLineEnd(bytes, end)) return end + 1
  }
  return 0
}

/** The position behind the first frame that ends after `from`; the end of the bytes when none does. */
export function firstFrameEnd(bytes: Buffer, from: number): number {
  for (let end = bytes.indexOf(LF, from); end !== -1; end = bytes.indexOf(LF, end + 1)) {
    if (isEmptyLineEnd(bytes, end)) return end + 1
  }
  return bytes.length
}

/**
 * Whether a line begins with these bytes; a space in them stands for any white space or none, as both event streams and
 * JSON leave it to the sender. Walks from line to line: a search for a single byte is so much cheaper than
 * one for a word that this beats searching for the word itself in everything that passes.
 */
export function hasLine(bytes: Buffer, beginning: Buffer): boolean {
  for (let start = 0; start < bytes.length;) {
    if (beginsAt(bytes, start, beginning)) return true
    const end = bytes.indexOf(LF, start)
    if (end === -1) return false
    start = end + 1
  }
  return false
}

/** Is shown every line of what passes but empty ones, by the positions of its first byte and of the LF behind it. */
export interface LineReader {
  line(bytes: Buffer, start: number, end: number): void
}

/** As `hasLine`, but shows every line to a reader on the way, also behind the first that begins so. */
export function readLines(bytes: Buffer, beginning: Buffer, reader: LineReader): boolean {
  let isFound = false
  for (let start = 0; start < bytes.length;) {
    // Every second line is empty, and a search costs as much as all that is done with the other.
    if (bytes[start] === LF) {
      start++
      continue
    }
    if (!isFound && beginsAt(bytes, start, beginning)) isFound = true
    const next = bytes.indexOf(LF, start)
    const end = next === -1 ? bytes.length : next
    reader.line(bytes, start, end)
    start = end + 1
  }
  return isFound
}

function beginsAt(bytes: Buffer, start: number, beginning: Buffer): boolean {
  let position = start
  // By index: this runs for every line that passes, and an iterator costs ten times as much.
  for (let index = 0; index < beginning.length; index++) {
    const expected = beginning[index]
    if (expected !== SPACE) {
      if (bytes[position++] !== expected) return false
      continue
    }
    while (bytes[position] === SPACE || bytes[position] === TAB) position++
  }
  return true
}

/** Whether the LF at `position` closes an empty line. */
function isEmptyLineEnd(bytes: Buffer, position: number): boolean {
  const before = bytes[position - 1]
  return before === LF || (before === CR && bytes[position - 2] === LF)
}

/** Splits a buffer of whole frames into frames, each with its closing empty line. */
export function* framesOf(frames: Buffer): Generator<Buffer> {
  let start = 0
  for (let end = frames.indexOf(LF); end !== -1; end = frames.indexOf(LF, end + 1)) {
    if (end === start || !isEmptyLineEnd(frames, end)) continue
    yield frames.subarray(start, end + 1)
    start = end + 1
  }
  if (start < frames.length) yield frames.subarray(start)
}

/** The data of a frame (several `data:` lines joined by LF), or undefined for comments and other fields alone. */
export function dataOf(frame: Buffer): string | undefined {
  const lines = frame
    .toString()
    .split(/\r?\n/)
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice(line[5] === ' ' ? 6 : 5))
  return lines.length === 0 ? undefined : lines.join('\n')
}

/** A frame's data as an object, or undefined when it is not one (`[DONE]`, broken JSON). */
export function jsonOf(frame: Buffer): Record<string, unknown> | undefined {
  const data = dataOf(frame)
  if (data === undefined) return undefined
  try {
    const value: unknown = JSON.parse(data)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined
  } catch {
    return undefined
  }
}

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

/** Upstreams say that they are finished within their last few frames. */
const TAIL_BYTES = 4096

/** So much is collected before it is cut down to a tail again: small pieces are copied once or twice, not every time. */
const COLLECTED_BYTES = 2 * TAIL_BYTES

const NOTHING = Buffer.alloc(0)

/**
 * The end of an event stream so far: its last frame whole, however large, and at least what stands before it within
 * 4 KiB. Marks of completion are looked for here, once, when the stream is over, and not in every chunk that passes.
 */
export class StreamTail {
  /** Of its own: a view would keep whole chunks alive, in every open stream. */
  private buffer: Buffer = NOTHING
  private length = 0

  /** Begins with a whole line. */
  get bytes(): Buffer {
    return this.buffer.subarray(0, this.length)
  }

  /** Adds a buffer of whole frames. */
  add(frames: Buffer): void {
    if (frames.length >= TAIL_BYTES) {
      this.hold(fromLine(frames, Math.min(frames.length - TAIL_BYTES, lastFrameStart(frames))))
      return
    }
    if (this.length + frames.length > COLLECTED_BYTES) this.hold(fromLine(this.bytes, this.length - TAIL_BYTES))
    else if (this.buffer.length === 0) this.hold(NOTHING)
    frames.copy(this.buffer, this.length)
    this.length += frames.length
  }

  /** These bytes and no others, which may be part of what is held already. */
  private hold(bytes: Buffer): void {
    const isRoom = this.buffer.length === COLLECTED_BYTES && bytes.length <= COLLECTED_BYTES
    const memory = isRoom ? this.buffer : Buffer.allocUnsafeSlow(Math.max(COLLECTED_BYTES, bytes.length))
    bytes.copy(memory)
    this.buffer = memory
    this.length = bytes.length
  }
}

const lastFrameStart = (bytes: Buffer): number => lastFrameEnd(bytes.subarray(0, -1))

/** Marks count at the beginning of a line only, so that the tail must not begin in the middle of one. */
const fromLine = (bytes: Buffer, position: number): Buffer =>
  position <= 0 ? bytes : bytes.subarray(bytes.indexOf(0x0a, position - 1) + 1)
