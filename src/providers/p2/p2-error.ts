import { type ErrorKind, GatewayError, presentableMessage, scrubMessage } from '../../core/errors.js'
import type { SentCredentials } from '../../dialects/openai-wire.js'
import type { UpstreamResponse } from '../../upstream/upstream-client.js'
import { type AccountError, accountError, parseUpstreamError } from '../../upstream/upstream-error.js'

interface FailureRow {
  readonly kind: ErrorKind
  readonly code?: string
  readonly param?: string
  /** Shown where the upstream's own words are not, or say nothing. */
  readonly message: string
}
type CodeRow = FailureRow | { readonly account: AccountError }

const FAILED: FailureRow = { kind: 'upstream_failed', message: 'The upstream failed to speak.' }
const TIMED_OUT: FailureRow = { kind: 'upstream_timeout', message: 'The upstream took too long to speak.' }

/** Codes of error frames, and what becomes of them; one that is not here is a failure of the upstream. */
const P2_CODES: Readonly<Record<number, CodeRow>> = {
  3001: { kind: 'invalid_request', message: 'The upstream refused the request.' },
  3003: { account: 'busy' },
  3005: FAILED,
  3006: FAILED,
  3010: {
    kind: 'invalid_request',
    param: 'input',
    code: 'string_above_max_length',
    message: "Invalid 'input': string too long for the upstream.",
  },
  3011: {
    kind: 'invalid_request',
    param: 'input',
    code: 'invalid_value',
    message: "Invalid 'input': the upstream cannot speak this text.",
  },
  3030: TIMED_OUT,
  3031: FAILED,
  3032: TIMED_OUT,
  3040: FAILED,
  3050: {
    kind: 'invalid_request',
    param: 'voice',
    code: 'voice_not_found',
    message: "Invalid 'voice': the upstream does not know it.",
  },
}

/** Words about the account behind the key; they come with several codes and then decide. The hint is the operator's. */
const ACCOUNT_WORDS: readonly (readonly [RegExp, AccountError, hint: string])[] = [
  [/requested grant not found/i, 'key', 'app id and access token do not belong to an app with this service'],
  [/get resource id|access denied/i, 'access', 'the app has not bought this voice or service'],
  [/quota exceeded for types: *concurrency/i, 'busy', 'more syntheses at a time than the app has bought'],
  [/quota exceeded for types:/i, 'quota', 'the trial or package of the app is used up'],
]

const OPERATOR_HINTS: readonly (readonly [RegExp, hint: string])[] = [
  [/Init Engine Instance failed/i, 'the voice does not belong to the cluster: see the option cluster'],
  [/^55000000:/, 'the voice and the resource are of different generations'],
]

/** What an error frame means and whose fault it is. Never throws; `text` may hold anything. */
export function parseP2Error(code: number, text: string, sent: SentCredentials): GatewayError {
  const words = withoutKey(text, sent.credentials)
  const row = P2_CODES[code] ?? FAILED
  // A code that names a field is about the request, and its words may repeat what the caller wrote there.
  const isOfField = 'param' in row
  const [, fault, accountHint] = (isOfField ? undefined : ACCOUNT_WORDS.find(([pattern]) => pattern.test(words))) ?? []
  const hint = accountHint ?? OPERATOR_HINTS.find(([pattern]) => pattern.test(`${code}: ${words}`))?.[1]
  const cause = causeOf(code, words, hint)
  if (fault !== undefined) return accountError(fault, sent.callersKey, { cause })
  if ('account' in row) return accountError(row.account, sent.callersKey, { cause })
  if (row.kind === 'invalid_request') return callerError(row, words, cause)
  const attempt = { phase: 'answered', channelError: true } as const
  // The upstream itself has given up, so that nothing runs on that a second request would pay for again.
  return new GatewayError(row.kind, row.message, { cause, attempt, retryable: true })
}

/**
 * What an HTTP answer in place of the upgrade means. A handshake holds nothing of the caller's but its key, so that
 * every refusal which is not about the key is the channel's fault: 404 is a wrong address, not an unknown model.
 */
export async function handshakeError(response: UpstreamResponse, sent: SentCredentials): Promise<GatewayError> {
  let words = ''
  const read = (_body: Record<string, unknown>, text: string): undefined => {
    words = withoutKey(text, sent.credentials)
  }
  const error = await parseUpstreamError(response, { read, callersKey: sent.callersKey, secret: sent.credentials })
  const cause = causeOf(response.status, words)
  if (KEY_KINDS.has(error.kind)) return new GatewayError(error.kind, error.message, { ...error.details, cause })
  const attempt = { phase: 'answered', channelError: true } as const
  return new GatewayError('upstream_failed', `The upstream failed with status ${response.status}.`, { cause, attempt })
}

const KEY_KINDS: ReadonlySet<ErrorKind> = new Set([
  'unauthorized',
  'forbidden_model',
  'rate_limited',
  'upstream_failed',
])

const callerError = ({ kind, message, code, param }: FailureRow, words: string, cause: Error): GatewayError =>
  new GatewayError(kind, words.trim() === '' ? message : words, {
    cause,
    attempt: { phase: 'answered' },
    ...(code === undefined ? {} : { code }),
    ...(param === undefined ? {} : { param }),
  })

/** For the log: what the upstream said, and what that means to whoever runs the channel. */
const causeOf = (code: number, words: string, hint?: string): Error =>
  new Error(presentableMessage(`P2 answered ${code}: ${words}${hint === undefined ? '' : ` (${hint})`}`))

/** The upstream's words without the parts of the key, which it may quote. */
function withoutKey(text: string, credentials: string): string {
  const parts = [credentials, ...credentials.split('|')].filter((part) => part !== '')
  // The longest first: the app id may stand within the token.
  parts.sort((one, other) => other.length - one.length)
  return scrubMessage(parts.reduce((words, part) => words.replaceAll(part, '[key]'), text))
}
