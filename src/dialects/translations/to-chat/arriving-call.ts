import type { CallPiece } from './answers.js'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPENING = new Set([0x7b, 0x5b])
const CLOSING = new Set([0x7d, 0x5d])

/** Of a call itself, about. */
const CALL_BYTES = 256

/** Whether the text of a JSON object, which comes in pieces, has ended. */
class JsonEnd {
  isReached = false
  private depth = 0
  private isInString = false
  private isEscaped = false

  add(piece: string): void {
    // By index, as a call may hold a whole file.
    for (let position = 0; position < piece.length && !this.isReached; position++) this.step(piece.charCodeAt(position))
  }

  private step(code: number): void {
    if (this.isEscaped) this.isEscaped = false
    else if (code === QUOTE) this.isInString = !this.isInString
    else if (this.isInString) this.isEscaped = code === BACKSLASH
    else if (OPENING.has(code)) this.depth++
    else if (CLOSING.has(code)) this.isReached = --this.depth === 0
  }
}

/** One call of a tool, collected by its index: its name may come late, and its pieces between those of others. */
export class ArrivingCall {
  state: 'waiting' | 'open' | 'written' = 'waiting'
  isCustom = false
  id: string | undefined
  name: string | undefined
  private readonly jsonEnd = new JsonEnd()
  private hasInput = false
  private isEnded = false
  private held = ''
  /** Of what stays of it, as long as they are not counted. */
  private newBytes = CALL_BYTES

  constructor(readonly index: number) {}

  get isReady(): boolean {
    return this.id !== undefined && this.name !== undefined
  }

  /** Nothing more of it will come, which of the input of a custom tool is never known. */
  get isComplete(): boolean {
    return this.isEnded || (!this.isCustom && this.jsonEnd.isReached)
  }

  /** It takes no arguments, or they have not begun: upstreams do not tell. */
  get isWithoutInput(): boolean {
    return !this.hasInput && !this.isComplete
  }

  /** Says that it is complete, whatever its input looks like. */
  end(): void {
    this.isEnded = true
  }

  /**
   * Some upstreams give all calls of a turn the same index, each of them whole and with a name. Their ids tell them apart, and where one
   * has none, another name or more input: others say the name again with every piece, also with empty ones behind the input. Before a
   * call is complete the name must differ, too, as there are upstreams that make up an id for every piece.
   */
  isFollowedBy({ id, name, text }: CallPiece): boolean {
    if (name === undefined) return false
    const isOtherName = this.name !== undefined && name !== this.name
    if (id !== undefined && this.id !== undefined) return id !== this.id && (this.isComplete || isOtherName)
    return this.isComplete && this.name !== undefined && (isOtherName || text.trim() !== '')
  }

  /** Once they are known, its id and name stay, whatever further pieces say. */
  add({ isCustom, id, name, text }: CallPiece): void {
    this.isCustom ||= isCustom
    this.id ??= this.kept(id)
    this.name ??= this.kept(name)
    this.hasInput ||= text.trim() !== ''
    this.jsonEnd.add(text)
  }

  /** Keeps a piece until it can be written; returns how many bytes more the call takes. */
  hold(text: string): number {
    const bytes = this.newBytes + Buffer.byteLength(text)
    this.newBytes = 0
    this.held += text
    return bytes
  }

  takeHeld(): string {
    const { held } = this
    this.held = ''
    return held
  }

  private kept(word: string | undefined): string | undefined {
    if (word !== undefined) this.newBytes += Buffer.byteLength(word)
    return word
  }
}
