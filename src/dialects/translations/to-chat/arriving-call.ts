import { JsonEnd } from '../cut-calls.js'
import type { CallPiece } from './answers.js'

/** Of a call itself, about. */
const CALL_BYTES = 256

/** One call of a tool, collected by its index: its name may come late, and its pieces between those of others. */
export class ArrivingCall {
  state: 'waiting' | 'open' | 'written' = 'waiting'
  isCustom = false
  private isLegacy = false
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
    return (this.isLegacy || this.id !== undefined) && this.name !== undefined
  }

  /** Nothing more of it will come, which of the input of a custom tool is never known. */
  get isComplete(): boolean {
    return this.isEnded || (!this.isCustom && this.jsonEnd.isReached)
  }

  /** Its arguments have begun, and not ended. */
  get isCut(): boolean {
    return !this.isCustom && this.jsonEnd.isMissing
  }

  /** More has come behind its arguments. */
  get isPassed(): boolean {
    return !this.isCustom && this.jsonEnd.isPassed
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
   * Some upstreams give all calls of a turn the same index, each of them whole and with a name. Their ids tell them apart, and where these
   * are the same or missing, another name or more input: others say the name again with every piece, also with empty ones behind the input.
   * Before a function's call is complete the name must differ, too, as there are upstreams that make up an id for every piece.
   */
  isFollowedBy({ id, name, text }: CallPiece): boolean {
    if (name === undefined) return false
    const isOtherName = this.name !== undefined && name !== this.name
    const isOtherId = id !== undefined && this.id !== undefined && id !== this.id
    if (isOtherId) return this.isCustom || this.isComplete || isOtherName
    return this.isComplete && this.name !== undefined && (isOtherName || text.trim() !== '')
  }

  /** Once they are known, its id and name stay, whatever further pieces say. */
  add({ isCustom, isLegacy, id, name, text }: CallPiece): void {
    this.isCustom ||= isCustom
    this.isLegacy ||= isLegacy
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
