import type { GatewayError } from '../core/gateway-error.js'
import { scrubbedJson } from '../core/message-text.js'
import { readRefusal, type RefusalBody } from '../upstream/upstream-error.js'
import type { UpstreamResponse } from '../upstream/upstream-exchange.js'

/** What was sent upstream, and whose it was. */
export interface SentCredentials {
  readonly credentials: string
  readonly callersKey: boolean
}

/** Codes with which upstreams of this dialect say that the account behind the key has run dry. */
const QUOTA_CODES: ReadonlySet<string> = new Set([
  'insufficient_quota',
  'credit_balance_exhausted',
  'billing_not_active',
])

/** The specification's audio table knows no 404: an unknown model is a bad request there. */
export const AUDIO_STATUS_MAP = { 404: 400 } as const

/** Reads `{error: {message, type, param, code}}`, the body of the audio and chat dialect. */
export function audioRefusal(
  response: UpstreamResponse,
  { callersKey, credentials }: SentCredentials,
  statusMap: Readonly<Record<number, number>> = {},
): Promise<GatewayError> {
  return readRefusal(response, { read: readBody, callersKey, secret: credentials, statusMap })
}

function readBody(body: Record<string, unknown>, text: string): RefusalBody | undefined {
  const { error } = body
  if (typeof error !== 'object' || error === null) return undefined
  const { message, code, param, type } = error as Record<string, unknown>
  if (typeof message !== 'string') return undefined
  // All four keys always stand in this dialect, whatever the upstream left out; siblings of `error` stay.
  const relayed = { ...body, error: { ...error, type: type ?? null, param: param ?? null, code: code ?? null } }
  const scrubbed = scrubbedJson(relayed)
  return {
    message,
    // An answer with nothing to hide and nothing to add is relayed as it is, layout and all.
    relayable: scrubbed === JSON.stringify(body) ? text : scrubbed,
    quota: QUOTA_CODES.has(String(code)) || QUOTA_CODES.has(String(type)),
    ...(typeof code === 'string' ? { code } : {}),
    ...(typeof param === 'string' ? { param } : {}),
  }
}
