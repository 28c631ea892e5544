import type { Fault, FaultName } from '@multi-model-gateway/sandbox/server/faults.js'

/** Channel timeouts short enough to wait for, long enough for a busy machine. */
export const SHORT_TIMEOUTS = { timeouts: { firstByteMs: 500, idleMs: 500 } }

/** What a fault looks like to a caller before the first byte, in the columns of the chat and the audio dialect. */
export interface FaultRow {
  readonly fault: FaultName
  readonly chatStatus: number
  readonly audioStatus: number
  readonly type: string
  readonly code: string | null
  /** The answer's `x-should-retry`. */
  readonly shouldRetry?: 'false'
  /** A piece of the upstream's own message that the caller sees; absent = the upstream's words stay inside. */
  readonly words?: string
}

const no = { shouldRetry: 'false' } as const
const failed = { chatStatus: 502, audioStatus: 500, type: 'upstream_error', code: 'upstream_failed' }
const timedOut = { ...failed, chatStatus: 504, code: 'upstream_timeout', ...no }
const caller = (status: number, audioStatus = status): Omit<FaultRow, 'fault' | 'code'> => ({
  chatStatus: status,
  audioStatus,
  type: 'invalid_request_error',
  ...no,
})

/** The caller's own faults: relayed in the upstream's words. */
export const CALLER_FAULTS: readonly FaultRow[] = [
  { fault: '400', ...caller(400), code: 'invalid_value', words: "Invalid value: '#400'." },
  { fault: '404', ...caller(404, 400), code: 'model_not_found', words: 'does not exist' },
  { fault: '413', ...caller(413), type: 'server_error', code: null, words: 'Maximum content size limit' },
  { fault: '422', ...caller(422), code: null, words: 'could not be processed' },
]

/** The channel's credentials and balance: never the caller's business, and no retry of theirs helps. */
export const ACCOUNT_FAULTS: readonly FaultRow[] = [
  { fault: '401', ...failed, ...no },
  { fault: '402', ...failed, ...no },
  { fault: '403', ...failed, ...no },
  { fault: 'quota', ...failed, ...no },
]

/** Failures that another channel may not have. A request that was sent and not answered may have been billed. */
export const CHANNEL_FAULTS: readonly FaultRow[] = [
  { fault: '500', ...failed },
  { fault: '503', ...failed },
  { fault: '529', ...failed },
  { fault: 'html', ...failed },
  { fault: 'malformed', ...failed },
  { fault: 'empty', ...failed },
  { fault: 'reset', ...failed, ...no },
  { fault: 'hang', ...timedOut },
]

/** A 429 of the upstream with these headers. */
export const tooManyRequests = (headers: Readonly<Record<string, string>>): Fault => ({
  kind: 'status',
  status: 429,
  headers: { 'content-type': 'application/json', ...headers },
  body: '{"error":{"message":"Slow down, org-canary1","type":"requests","param":null,"code":"rate_limit_exceeded"}}',
})
