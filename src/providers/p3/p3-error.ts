import { type ErrorKind, GatewayError, type GatewayErrorDetails, scrubMessage } from '../../core/errors.js'
import { isRecord } from '../../core/validation-rules.js'
import type { SentCredentials } from '../../dialects/openai-wire.js'
import type { UpstreamResponse } from '../../upstream/exchange.js'
import { type AccountError, accountError, parseUpstreamError } from '../../upstream/upstream-error.js'

/**
 * The party at fault for a status code. `caller` = the request would be refused on every channel; `upstream` = P3 itself;
 * the others = the account behind the key.
 */
type StatusRow =
  | { readonly fault: 'caller'; readonly named: Pick<GatewayErrorDetails, 'code' | 'param'> }
  | { readonly fault: 'upstream'; readonly kind: ErrorKind }
  | { readonly fault: AccountError; readonly retryAfterSeconds?: number }

const caller = (code?: string, param?: string): StatusRow => ({
  fault: 'caller',
  named: { ...(code === undefined ? {} : { code }), ...(param === undefined ? {} : { param }) },
})
const BUSY: StatusRow = { fault: 'busy' }
const FAILED: StatusRow = { fault: 'upstream', kind: 'upstream_failed' }

/** Every documented `base_resp.status_code` but 0, which is success. A code that is not here is P3's own failure. */
export const P3_STATUS_CODES: Readonly<Record<number, StatusRow>> = {
  1000: FAILED,
  1001: { fault: 'upstream', kind: 'upstream_timeout' },
  1002: BUSY,
  1004: { fault: 'key' },
  1008: { fault: 'quota' },
  1013: FAILED,
  1024: FAILED,
  1026: caller('content_policy_violation', 'input'),
  1027: caller('content_policy_violation'),
  1033: FAILED,
  1039: BUSY,
  1041: BUSY,
  1042: caller('invalid_characters', 'input'),
  1043: caller(),
  1044: caller(),
  2013: caller(),
  2037: caller(),
  2038: { fault: 'access' },
  2039: caller(),
  2042: caller('voice_not_permitted', 'voice'),
  2045: BUSY,
  2048: caller(),
  2049: { fault: 'key' },
  2054: caller('voice_not_found', 'voice'),
  // A window of five hours: 60 s is the longest Retry-After that the gateway sends.
  2056: { fault: 'busy', retryAfterSeconds: 60 },
  20132: caller('invalid_voice', 'voice'),
}

/** What P3 reports in `base_resp`. */
interface P3Error {
  readonly code: number
  readonly message: string
}

/** The failure that a status code other than 0 means. The upstream's words are shown only where the fault is the caller's. */
export function p3Failure({ code, message }: P3Error, sent: SentCredentials): GatewayError {
  const row = P3_STATUS_CODES[code] ?? FAILED
  const words = scrubMessage(message.replaceAll(sent.credentials, '[key]'))
  const cause = `status_code ${code}: ${words}`
  if (row.fault === 'caller') {
    const text = words === '' ? `The upstream refused the request (${code}).` : words
    return new GatewayError('invalid_request', text, { ...row.named, cause, attempt: { phase: 'answered' } })
  }
  if (row.fault === 'upstream') {
    const attempt = { phase: 'answered', channelError: true } as const
    return new GatewayError(row.kind, `The upstream failed with status code ${code}.`, { cause, attempt })
  }
  const { fault, retryAfterSeconds = 1 } = row
  return accountError(fault, sent.callersKey, { cause, retryAfterSeconds })
}

/** Reads a response whose HTTP status is not 200. P3's status code takes precedence if it says more than that status. */
export async function parseP3Error(response: UpstreamResponse, sent: SentCredentials): Promise<GatewayError> {
  const reported: P3Error[] = []
  const byStatus = await parseUpstreamError(response, {
    read: (body) => {
      const error = errorOf(body)
      if (error !== undefined) reported.push(error)
      return error === undefined ? undefined : { message: error.message }
    },
    callersKey: sent.callersKey,
    secret: sent.credentials,
  })
  const known = reported.find(({ code }) => Object.hasOwn(P3_STATUS_CODES, code))
  if (known === undefined) return byStatus
  const failure = p3Failure(known, sent)
  const { code, param } = failure.details
  const judgesAnew = failure.kind !== byStatus.kind && failure.kind !== 'invalid_request'
  return code !== undefined || param !== undefined || judgesAnew ? failure : byStatus
}

function errorOf({ base_resp: status }: Record<string, unknown>): P3Error | undefined {
  if (!isRecord(status)) return undefined
  const { status_code: code, status_msg: message } = status
  return typeof code === 'number' && typeof message === 'string' ? { code, message } : undefined
}
