import { malformedResponse } from '../../upstream/upstream-response.js'
import type { UnknownWords } from '../translator.js'
import { isAbsent, recordOr } from './members.js'

/** Why a model stopped, in the words of chat and messages; each table is closed, and a word that it lacks means a plain end. */

/** How an answer ended, whatever dialect said it. `refused` beats calls of tools: those of a refused turn are not handed on. */
export type AnswerEnd = 'ended' | 'truncated' | 'called' | 'refused'

const CHAT_ENDS: ReadonlyMap<string, AnswerEnd> = new Map([
  ['stop', 'ended'],
  ['length', 'truncated'],
  ['model_length', 'truncated'],
  ['model_context_window_exceeded', 'truncated'],
  // In the words of messages, of upstreams that are themselves translated.
  ['max_tokens', 'truncated'],
  ['tool_calls', 'called'],
  ['function_call', 'called'],
  ['content_filter', 'refused'],
  ['sensitive', 'refused'],
])

/** How much an end says that something is missing. */
const GRAVITY: Readonly<Record<AnswerEnd, number>> = { ended: 0, called: 0, truncated: 1, refused: 2 }

/** Of the reasons in a stream, of which there should be one, the gravest, else the last: what is missing is not made good by a later word. */
const gravestIn =
  (ends: ReadonlyMap<unknown, AnswerEnd>) =>
  <Reason>(before: Reason, next: Reason): Reason => {
    if (isAbsent(next)) return before
    const gravity = (reason: Reason): number => GRAVITY[ends.get(reason) ?? 'ended']
    return gravity(before) > gravity(next) ? before : next
  }

export const gravestFinish = gravestIn(CHAT_ENDS)

/** What else a chat answer says of its end. */
interface ChatAnswer {
  readonly hasCalls: boolean
  readonly hasRefusal: boolean
}

/** Some upstreams say stop where they call tools, or refuse, or say that they call tools, and call none. */
export function endOfChat(
  finishReason: string,
  { hasCalls, hasRefusal }: ChatAnswer,
  unknownWords: UnknownWords | undefined,
): AnswerEnd {
  const end = CHAT_ENDS.get(finishReason)
  if (end === undefined) unknownWords?.note('finish reason', finishReason)
  if (end === 'refused' || hasRefusal) return 'refused'
  if (end === 'truncated') return end
  return hasCalls ? 'called' : 'ended'
}

export const CHAT_FINISH: Readonly<Record<AnswerEnd, string>> = {
  ended: 'stop',
  truncated: 'length',
  called: 'tool_calls',
  refused: 'content_filter',
}

const MESSAGES_ENDS: ReadonlyMap<string, AnswerEnd> = new Map([
  ['end_turn', 'ended'],
  ['stop_sequence', 'ended'],
  ['max_tokens', 'truncated'],
  ['model_context_window_exceeded', 'truncated'],
  ['tool_use', 'called'],
  ['refusal', 'refused'],
])

export const gravestStop = gravestIn(MESSAGES_ENDS)

/** Throws `upstream_failed` for an answer without an end, and for a turn that is only paused: other dialects cannot go on with it. */
export function endOfMessage(stopReason: unknown, unknownWords: UnknownWords | undefined): AnswerEnd {
  if (typeof stopReason !== 'string' || stopReason === 'pause_turn') {
    throw malformedResponse('The upstream did not end its answer.')
  }
  const end = MESSAGES_ENDS.get(stopReason)
  if (end === undefined) unknownWords?.note('stop reason', stopReason)
  return end ?? 'ended'
}

/** Stands in where the upstream does not explain its refusal: without a text, clients show an empty answer. */
const REFUSED = 'The model refused to answer.'

/** Why a message was refused, by its `stop_details`. */
export function explanationOf(details: unknown): string {
  const { explanation } = recordOr(details)
  return typeof explanation === 'string' && explanation !== '' ? explanation : REFUSED
}

export const MESSAGES_STOP: Readonly<Record<AnswerEnd, string>> = {
  ended: 'end_turn',
  truncated: 'max_tokens',
  called: 'tool_use',
  refused: 'refusal',
}
