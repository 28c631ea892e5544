import { malformedResponse } from '../../upstream/upstream-response.js'
import { closingQuote, isAt, JSON_BYTES } from '../../core/json-spans.js'

const { QUOTE, COMMA, OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET } = JSON_BYTES

const FIELD = Buffer.from('data:')
const LF = 0x0a
const CR = 0x0d

interface EventDataSink {
  /** A piece of an event's data; pieces of one line follow each other. */
  data(piece: Buffer): void
  /** End of a data line. Line ends within an event's data are not passed on. */
  lineEnd(): void
  /** An empty line: the event is over. */
  eventEnd(): void
}

/**
 * Reads data lines of an event stream in arbitrary chunks and passes them on as they come: a line is never buffered, however long
 * it is. Comments and other fields are skipped. White space around the data stays, as JSON allows it.
 */
export class EventDataReader {
  private line: 'beginning' | 'data' | 'other' = 'beginning'
  /** Bytes of the field's name that the line has begun with. */
  private matched = 0

  constructor(private readonly sink: EventDataSink) {}

  write(bytes: Buffer): void {
    let position = 0
    while (position < bytes.length) {
      if (this.line === 'beginning') {
        this.matchField(bytes[position++] as number)
        continue
      }
      const end = bytes.indexOf(LF, position)
      const piece = bytes.subarray(position, end === -1 ? bytes.length : end)
      if (this.line === 'data' && piece.length > 0) this.sink.data(piece)
      if (end === -1) return
      this.endLine()
      position = end + 1
    }
  }

  private matchField(byte: number): void {
    if (byte === LF) this.endLine()
    else if (byte === FIELD[this.matched]) {
      this.matched++
      if (this.matched === FIELD.length) this.line = 'data'
    } else if (byte !== CR || this.matched > 0) this.line = 'other'
  }

  private endLine(): void {
    const isEmpty = this.line === 'beginning' && this.matched === 0
    const wasData = this.line === 'data'
    this.line = 'beginning'
    this.matched = 0
    if (wasData) this.sink.lineEnd()
    else if (isEmpty) this.sink.eventEnd()
  }
}

/** Decodes hexadecimal text in chunks; a pair of digits may be split. */
export class HexDecoder {
  /** The first digit of a pair whose second one has not come yet. */
  private half = ''

  /** The bytes of all pairs that are complete by now. Throws for anything that is not a hexadecimal digit. */
  decode(piece: Buffer): Buffer {
    const digits = this.half + piece.toString('latin1')
    const isEven = digits.length % 2 === 0
    this.half = isEven ? '' : digits.slice(-1)
    const pairs = isEven ? digits : digits.slice(0, -1)
    const bytes = Buffer.from(pairs, 'hex')
    // Node stops silently at the first invalid character.
    if (bytes.length * 2 !== pairs.length) throw malformedResponse('The upstream sent audio that is not hexadecimal.')
    return bytes
  }

  /** Called at the end of the text. Throws when a pair is incomplete. */
  finish(): void {
    if (this.half !== '') throw malformedResponse('The upstream sent half a byte of audio.')
  }
}

/** Limit of a response without its audio. */
const MAXIMUM_REST_BYTES = 65_536
const INITIAL_REST_BYTES = 1024
const MAXIMUM_DEPTH = 64

/** Path of the audio in a response: `{"data": {"audio": "…"}}`. */
const AUDIO_PATH = ['data', 'audio'] as const

type Place = 'structure' | 'key' | 'string' | 'audio'

/**
 * Reads JSON in arbitrary chunks and extracts one string: the hexadecimal audio, which is passed on as bytes and never
 * buffered. The rest, the same JSON with an empty string in that place, is kept for a parser, which also detects invalid JSON.
 * Throws `upstream_failed` for audio that is not hexadecimal and for a rest larger than 64 KiB.
 */
export class JsonAudioScanner {
  private rest = Buffer.allocUnsafe(INITIAL_REST_BYTES)
  private restBytes = 0
  private place: Place = 'structure'
  /** How many of the next bytes, 0 or 1, the last one escapes. */
  private escapedBytes = 0
  private expectsKey = false
  private keyStart = 0
  /** Opening byte of each container that is open. */
  private readonly containers: number[] = []
  /** Whether the last key read at the first and at the second level is that of the audio. */
  private readonly isOnPath: boolean[] = [false, false]
  private hex = new HexDecoder()

  constructor(private readonly onAudio: (bytes: Buffer) => void) {}

  /** Whether all that was opened has been closed again. */
  get isClosed(): boolean {
    return this.restBytes > 0 && this.place === 'structure' && this.containers.length === 0
  }

  write(bytes: Buffer): void {
    let position = 0
    while (position < bytes.length) {
      position = this.place === 'structure' ? this.readStructure(bytes, position) : this.readString(bytes, position)
    }
  }

  /** The text of everything but the audio. The scanner then begins anew. */
  takeText(): string {
    const text = this.rest.toString('utf8', 0, this.restBytes)
    this.restBytes = 0
    this.place = 'structure'
    this.escapedBytes = 0
    this.expectsKey = false
    this.containers.length = 0
    this.hex = new HexDecoder()
    return text
  }

  /** Reads on to where the next string begins and returns that position, or the end of the bytes. */
  private readStructure(bytes: Buffer, start: number): number {
    let position = start
    for (let isOpen = false; !isOpen && position < bytes.length; position++) {
      const byte = bytes[position] as number
      isOpen = byte === QUOTE
      if (isOpen) this.openString()
      else this.readSign(byte)
    }
    this.keep(bytes, start, position)
    this.keyStart = this.restBytes
    return position
  }

  /** Reads on to where the string is over and returns that position, or the end of the bytes. */
  private readString(bytes: Buffer, start: number): number {
    const quote = closingQuote(bytes, start + this.escapedBytes)
    const isOver = quote < bytes.length
    const end = isOver ? quote + 1 : bytes.length
    this.escapedBytes = isOver ? 0 : quote - end
    if (this.place !== 'audio') this.keep(bytes, start, end)
    else {
      this.takeAudio(bytes.subarray(start, isOver ? quote : end))
      if (isOver) this.keep(bytes, quote, end)
    }
    if (isOver) this.closeString()
    return end
  }

  private takeAudio(digits: Buffer): void {
    const audio = this.hex.decode(digits)
    if (audio.length > 0) this.onAudio(audio)
  }

  private readSign(byte: number): void {
    switch (byte) {
      case OPEN_BRACE:
      case OPEN_BRACKET:
        if (this.containers.push(byte) > MAXIMUM_DEPTH)
          throw malformedResponse('The upstream nests its answer too deep.')
        this.isOnPath[this.containers.length - 1] = false
        this.expectsKey = byte === OPEN_BRACE
        break
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        this.containers.pop()
        this.expectsKey = false
        break
      case COMMA:
        this.expectsKey = this.containers.at(-1) === OPEN_BRACE
    }
  }

  private openString(): void {
    if (this.expectsKey) this.place = 'key'
    else this.place = this.isAtAudio ? 'audio' : 'string'
  }

  private closeString(): void {
    if (this.place === 'audio') {
      this.hex.finish()
      this.hex = new HexDecoder()
    } else if (this.place === 'key') {
      this.expectsKey = false
      const level = this.containers.length - 1
      const name = AUDIO_PATH[level]
      if (name !== undefined) this.isOnPath[level] = isAt(this.rest, this.keyStart, this.restBytes - 1, name)
    }
    this.place = 'structure'
  }

  private get isAtAudio(): boolean {
    const { containers, isOnPath } = this
    return (
      containers.length === AUDIO_PATH.length &&
      containers.every((opening, level) => opening === OPEN_BRACE && isOnPath[level] === true)
    )
  }

  private keep(bytes: Buffer, start: number, end: number): void {
    const neededBytes = this.restBytes + end - start
    if (neededBytes > MAXIMUM_REST_BYTES) throw malformedResponse('The upstream says too much beside the audio.')
    if (neededBytes > this.rest.length) {
      const larger = Buffer.allocUnsafe(Math.max(this.rest.length * 2, neededBytes))
      this.rest.copy(larger)
      this.rest = larger
    }
    // A few bytes at a time: to call for a copy costs more than these steps.
    const { rest } = this
    let kept = this.restBytes
    for (let position = start; position < end; position++) rest[kept++] = bytes[position] as number
    this.restBytes = kept
  }
}
