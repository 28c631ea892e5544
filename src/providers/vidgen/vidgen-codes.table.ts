import type { ErrorKind } from '../../core/errors.js'
import type { AccountFault } from '../../upstream/account-refusal.js'

/**
 * Whose fault an answer is. `caller` = it would be refused on every channel; `closed` = the upstream takes nothing on
 * for a while; `upstream` = it broke down, and may have done the work before; the others = the account behind the key.
 */
export type CodeRow =
  | { readonly fault: 'caller'; readonly kind: ErrorKind; readonly word?: string }
  | { readonly fault: 'closed'; readonly retryAfterSeconds: number }
  | { readonly fault: 'upstream'; readonly kind: ErrorKind }
  | {
      readonly fault: AccountFault
      readonly word?: string
      readonly retryAfterSeconds?: number
      /** Another token may be accepted. */
      readonly staleToken?: true
    }

const KEY: CodeRow = { fault: 'key' }
const STALE: CodeRow = { fault: 'key', staleToken: true }
const QUOTA: CodeRow = { fault: 'quota' }
const ACCESS: CodeRow = { fault: 'access' }
const INVALID: CodeRow = { fault: 'caller', kind: 'invalid_request' }
const MISSING: CodeRow = { fault: 'caller', kind: 'not_found' }
const POLICY: CodeRow = { fault: 'caller', kind: 'invalid_request', word: 'content_policy_violation' }
const BUSY: CodeRow = { fault: 'busy' }

export const FAILED: CodeRow = { fault: 'upstream', kind: 'upstream_failed' }

export const UNKNOWN_TASK = 1203

/** Every documented code but 0, which is success. The same HTTP status stands for different faults: codes come first. */
export const VIDGEN_CODES: Readonly<Record<number, CodeRow>> = {
  1000: KEY,
  1001: KEY,
  1002: KEY,
  // The clocks differ, or the token has grown old on its way.
  1003: STALE,
  1004: STALE,
  1100: ACCESS,
  1101: QUOTA,
  1102: QUOTA,
  1103: ACCESS,
  1200: INVALID,
  1201: INVALID,
  1202: MISSING,
  [UNKNOWN_TASK]: MISSING,
  1300: POLICY,
  1301: POLICY,
  1302: BUSY,
  // A place is free when one of the account's tasks ends, which takes a while.
  1303: { fault: 'busy', word: 'concurrency_limit_exceeded', retryAfterSeconds: 5 },
  // The gateway's address is not on the account's list.
  1304: ACCESS,
  5000: FAILED,
  5001: { fault: 'closed', retryAfterSeconds: 30 },
  5002: { fault: 'upstream', kind: 'upstream_timeout' },
}

/** Refusals without a code that is known here. With any other status the upstream may have done the work. */
export const VIDGEN_STATUSES: Readonly<Record<number, CodeRow>> = {
  400: INVALID,
  401: KEY,
  402: QUOTA,
  403: ACCESS,
  404: MISSING,
  413: { fault: 'caller', kind: 'payload_too_large' },
  422: INVALID,
  429: BUSY,
}
