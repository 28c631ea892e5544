import type { ErrorKind } from '../../core/errors.js'
import type { AccountFault } from '../../upstream/account-refusal.js'

/**
 * Whose fault an answer is: `caller` = the task or the question, `upstream` = it broke down, the others = the account
 * behind the secret.
 */
export type FaultRow =
  | { readonly fault: 'caller'; readonly kind: ErrorKind; readonly word?: string }
  | { readonly fault: 'upstream' }
  | { readonly fault: AccountFault }

const INVALID: FaultRow = { fault: 'caller', kind: 'invalid_request' }
const BUSY: FaultRow = { fault: 'busy' }
export const FAILED: FaultRow = { fault: 'upstream' }

/** Also said where the upstream has no drawing account left. */
export const NOT_FOUND_CODE = 3

/** Codes of submit results but 1, which is success. */
export const IMGGEN_CODES: Readonly<Record<number, FaultRow>> = {
  [NOT_FOUND_CODE]: FAILED,
  4: INVALID,
  9: FAILED,
  // The task waits for a window to be confirmed, or is there already: nothing that another question would change.
  21: INVALID,
  22: BUSY,
  23: BUSY,
  24: { fault: 'caller', kind: 'invalid_request', word: 'content_policy_violation' },
  30: { fault: 'quota' },
}

/** Statuses that say more than any code beside them: a relay writes code 4 beside each of its own. */
export const ACCOUNT_STATUSES: Readonly<Record<number, FaultRow>> = {
  401: { fault: 'key' },
  402: { fault: 'quota' },
  403: { fault: 'access' },
}

/** Refusals without a code that is known here. */
export const OTHER_STATUSES: Readonly<Record<number, FaultRow>> = { 400: INVALID, 422: INVALID, 429: BUSY }

/** How the members of the family say that they know no such task, where they use words; the first spelling is theirs. */
export const UNKNOWN_TASK =
  /task[\s_-]*(?:(?:is|was|does)[\s_-]*)?(?:no|not|n't)[\s_-]*(?:found|exist)|no such task|unknown task|任务(?:不存在|未找到|没有找到)|(?:未找到|找不到)\S{0,60}任务/i

/** How they say under the same code that nobody is there to ask. */
export const NO_ACCOUNT = /account|账号|实例/i
