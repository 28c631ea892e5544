import { createHmac, timingSafeEqual } from 'node:crypto'

/** The three headers of Standard Webhooks, by their lower-case names. */
export interface WebhookHeaders {
  readonly 'webhook-id': string
  /** Unix seconds. */
  readonly 'webhook-timestamp': string
  readonly 'webhook-signature': string
}

/** Receivers refuse what is older or newer. */
const TOLERANCE_SECONDS = 300

/** Signs by Standard Webhooks; `secret` is `whsec_` and the base64 of the key. */
export function webhookHeaders(secret: string, id: string, timestampSeconds: number, body: string): WebhookHeaders {
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestampSeconds),
    'webhook-signature': `v1,${mac(secret, id, String(timestampSeconds), body)}`,
  }
}

/** Whether one of the signatures is right and the time is near. */
export function isSignedWith(
  secret: string,
  headers: Readonly<Record<string, string>>,
  body: string,
  nowMs: number,
): boolean {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures } = headers
  if (id === undefined || timestamp === undefined || signatures === undefined) return false
  if (!(Math.abs(Number(timestamp) - nowMs / 1000) <= TOLERANCE_SECONDS)) return false
  const expected = Buffer.from(`v1,${mac(secret, id, timestamp, body)}`)
  return signatures.split(' ').some((signature) => {
    const given = Buffer.from(signature)
    return given.length === expected.length && timingSafeEqual(given, expected)
  })
}

function mac(secret: string, id: string, timestamp: string, body: string): string {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  return createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
}
