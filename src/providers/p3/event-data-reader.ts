const FIELD = Buffer.from('data:')
const LF = 0x0a
const CR = 0x0d

export interface EventDataSink {
  /** A piece of an event's data; pieces of one line follow each other. */
  data(piece: Buffer): void
  /** A line of data has ended. Line ends within an event's data are not handed on. */
  lineEnd(): void
  /** An empty line: the event is over. */
  eventEnd(): void
}

/**
 * The data lines of an event stream that may be cut anywhere, handed on as they come: a line is never held, however long
 * it is. Comments and other fields are passed over. White space around the data stays: JSON does not mind it.
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
