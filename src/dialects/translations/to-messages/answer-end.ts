import { isRecord } from '../../../core/validation-rules.js'
import { malformedResponse } from '../../../upstream/upstream-response.js'
import type { Members } from '../members.js'
import { type AnswerEnd, endOfMessage } from '../stop-reasons.js'

/** Shown where an upstream refuses without a word: a refusal tells a caller that there is no answer. */
const REFUSED = 'The model refused to answer.'

/** How the answer ended; of a turn that is only paused there is no telling here. Throws `upstream_failed`. */
export function endOf(stopReason: unknown): AnswerEnd {
  const end = typeof stopReason === 'string' ? endOfMessage(stopReason) : undefined
  if (end === undefined) throw malformedResponse('The upstream did not end its answer.')
  return end
}

/** Why it was refused, by its `stop_details`. */
export const explanationOf = (details: unknown): string =>
  isRecord(details) && typeof details['explanation'] === 'string' && details['explanation'] !== ''
    ? details['explanation']
    : REFUSED

/** Totals, which replace earlier ones; what is not told again stays. */
export const laterTotals = (earlier: Members | undefined, told: Members): Members => ({
  ...earlier,
  ...Object.fromEntries(Object.entries(told).filter(([, total]) => total !== null)),
})
