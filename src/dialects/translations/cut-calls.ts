import type { GatewayError } from '../../core/errors.js'
import { malformedResponse } from '../../upstream/upstream-response.js'
import type { AnswerEnd } from './stop-reasons.js'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPENING_BRACKET = 0x5b
const CLOSING_BRACKET = 0x5d
const OPENING_BRACE = 0x7b
const CLOSING_BRACE = 0x7d

/** Where the arguments of a call end, which come in pieces. What is no object or list has no end of its own: it may be anything. */
export class JsonEnd {
  isReached = false
  /** More than blanks has come behind the end of an object, as which arguments are sent. */
  isPassed = false
  /** The first character that is no blank. */
  private start: string | undefined
  private depth = 0
  private isInString = false
  private isEscaped = false

  /** An object, a list or a string has begun, and not ended. */
  get isMissing(): boolean {
    return this.depth > 0 || this.isInString
  }

  add(piece: string): void {
    const position = this.isReached ? 0 : this.scan(piece)
    if (this.isReached && !this.isPassed) this.isPassed = this.start === '{' && piece.slice(position).trim() !== ''
  }

  /** One loop over character codes, as each call passes through it: twice as fast as a method for each. Returns where it ended. */
  private scan(piece: string): number {
    this.start ??= piece.trimStart()[0]
    const hasEnd = this.start === '{' || this.start === '['
    let { depth, isInString, isEscaped } = this
    let position = 0
    while (position < piece.length && !this.isReached) {
      const code = piece.charCodeAt(position++)
      if (isInString) {
        if (isEscaped) isEscaped = false
        else if (code === BACKSLASH) isEscaped = true
        else if (code === QUOTE) isInString = false
      } else if (code === QUOTE) isInString = true
      else if (code === OPENING_BRACE || code === OPENING_BRACKET) depth++
      else if (code === CLOSING_BRACE || code === CLOSING_BRACKET) this.isReached = --depth === 0 && hasEnd
    }
    this.depth = depth
    this.isInString = isInString
    this.isEscaped = isEscaped
    return position
  }
}

/** Whether the arguments of a call end too early. */
export function isCutJson(text: string): boolean {
  const end = new JsonEnd()
  end.add(text)
  return end.isMissing
}

const PLAIN_ENDS: ReadonlySet<AnswerEnd> = new Set(['ended', 'called'])

/** Whether an answer that ended so has nothing missing. The other ends say themselves that something is. */
export const isPlainEnd = (end: AnswerEnd): boolean => PLAIN_ENDS.has(end)

/** Throws `upstream_failed` for the arguments of a call in a whole answer, as for those that come in pieces. */
export function checkArguments(text: string, end: AnswerEnd): void {
  const json = new JsonEnd()
  json.add(text)
  if (json.isPassed) throw callWentOn()
  if (json.isMissing && isPlainEnd(end)) throw callNotEnded()
}

/** A client would make a call with arguments that are not whole. */
export const callNotEnded = (): GatewayError => malformedResponse('The upstream did not end a call of a tool.')

/** It would make one with arguments that are not JSON. */
export const callWentOn = (): GatewayError => malformedResponse('The upstream went on with a call that was complete.')
