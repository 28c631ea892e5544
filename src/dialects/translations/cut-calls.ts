import type { GatewayError } from '../../core/errors.js'
import { malformedResponse } from '../../upstream/upstream-response.js'
import type { AnswerEnd } from './stop-reasons.js'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPENING = new Set([0x7b, 0x5b])
const CLOSING = new Set([0x7d, 0x5d])

/** Whether the text of a JSON object, which comes in pieces, has ended. */
export class JsonEnd {
  isReached = false
  /** More than blanks has come behind the end. */
  isPassed = false
  private depth = 0
  private isInString = false
  private isEscaped = false

  /** It has begun, and not ended. */
  get isMissing(): boolean {
    return this.depth > 0 || this.isInString
  }

  add(piece: string): void {
    // By index, as a call may hold a whole file.
    let position = 0
    for (; position < piece.length && !this.isReached; position++) this.step(piece.charCodeAt(position))
    this.isPassed ||= piece.slice(position).trim() !== ''
  }

  private step(code: number): void {
    if (this.isEscaped) this.isEscaped = false
    else if (code === QUOTE) this.isInString = !this.isInString
    else if (this.isInString) this.isEscaped = code === BACKSLASH
    else if (OPENING.has(code)) this.depth++
    else if (CLOSING.has(code)) this.isReached = --this.depth === 0
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
