import { createHmac } from 'node:crypto'

const SECRET_PREFIX = 'whsec_'

export interface WebhookMessage {
  /** The same for every attempt. */
  readonly webhookId: string
  /** When this attempt is made, Unix milliseconds. */
  readonly atMs: number
  /** Exactly the bytes that are sent. */
  readonly body: string
}

/**
 * The headers of Standard Webhooks, names and values in turn: id, time in seconds, and the signature where there is a
 * secret (`whsec_<base64>`): HMAC-SHA256 over id, time and body, joined by dots, in base64 behind the version `v1`.
 */
export function webhookHeaders({ webhookId, atMs, body }: WebhookMessage, secret: string | undefined): string[] {
  const timestamp = String(Math.floor(atMs / 1000))
  const headers = ['webhook-id', webhookId, 'webhook-timestamp', timestamp]
  if (secret === undefined) return headers
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64')
  const signature = createHmac('sha256', key).update(`${webhookId}.${timestamp}.${body}`).digest('base64')
  return [...headers, 'webhook-signature', `v1,${signature}`]
}
