import { malformedResponse } from '../../../upstream/upstream-response.js'
import type { UnknownWords } from '../../translator.js'
import { recordOr } from '../members.js'
import { type AnswerEnd, endOfMessage } from '../stop-reasons.js'

/** Shown where an upstream refuses without a word: a refusal tells a caller that there is no answer. */
const REFUSED = 'The model refused to answer.'

/** How the answer ended. Throws `upstream_failed` for one without an end, and for a turn that is only paused. */
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
