import { malformedResponse } from '../../../upstream/upstream-response.js'
import type { UnknownWords } from '../../translator.js'
import { isAbsent, type Members, recordOr } from '../members.js'
import { type AnswerEnd, endOfMessage } from '../stop-reasons.js'

/** Shown where an upstream refuses without a word: a refusal tells a caller that there is no answer. */
const REFUSED = 'The model refused to answer.'

/** How the answer ended; of a turn that is only paused there is no telling here. Throws `upstream_failed`. */
export function endOf(stopReason: unknown, unknownWords: UnknownWords | undefined): AnswerEnd {
  const end = typeof stopReason === 'string' ? endOfMessage(stopReason, unknownWords) : undefined
  if (end === undefined) throw malformedResponse('The upstream did not end its answer.')
  return end
}

/** Why it was refused, by its `stop_details`. */
export function explanationOf(details: unknown): string {
  const { explanation } = recordOr(details)
  return typeof explanation === 'string' && explanation !== '' ? explanation : REFUSED
}

/** Types of events that say nothing to callers in other dialects. */
const SILENT_EVENTS: ReadonlySet<unknown> = new Set(['message_stop', 'error'])

/** Frames for an event without a meaning in other dialects: what only keeps the connection alive does so there. */
export function otherEvent(type: unknown, unknownWords: UnknownWords | undefined): string {
  if (type === 'ping') return ': ping\n\n'
  if (typeof type === 'string' && !SILENT_EVENTS.has(type)) unknownWords?.note('event', type)
  return ''
}

/** Totals, which replace earlier ones; what is not told again stays. */
export const laterTotals = (earlier: Members | undefined, told: Members): Members => ({
  ...earlier,
  ...Object.fromEntries(Object.entries(told).filter(([, total]) => !isAbsent(total))),
})
