import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { Webhook, WebhookVerificationError } from 'standardwebhooks'
import { webhookHeaders, type WebhookMessage } from './webhook-signature.js'

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

const signed = (message: WebhookMessage, secret: string | undefined): Record<string, string> => {
  const list = webhookHeaders(message, secret)
  return Object.fromEntries(list.flatMap((name, index) => (index % 2 === 0 ? [[name, list[index + 1] ?? '']] : [])))
}

/** What a receiver's library makes of it; throws when it does not verify. */
const received = (body: string, headers: Record<string, string>, secret = SECRET): unknown =>
  new Webhook(secret).verify(body, headers)

describe('A signed callback', () => {
  it('has the signature of the published example', () => {
    const body =
      '{"id":"1234567890","status":"succeeded","message":"","create_time":1781080778802,"update_time":1781080794151}'
    const message = { webhookId: '9876543210', atMs: 1_781_080_794_999, body }
    expect(webhookHeaders(message, 'whsec_dGVzdHNlY3JldHRlc3RzZWNyZXR0ZXN0c2VjcmV0MTI=')).toEqual([
      ...['webhook-id', '9876543210'],
      ...['webhook-timestamp', '1781080794'],
      ...['webhook-signature', 'v1,UsKlJP00XoQyOn410NM9xv34sP+Gl0jnOO9Lcpr7NJ4='],
    ])
  })

  it('verifies with the library of Standard Webhooks, whatever it says', () => {
    fc.assert(
      fc.property(fc.json({ stringUnit: 'grapheme' }), fc.uint8Array({ minLength: 24, maxLength: 64 }), (body, key) => {
        const secret = `whsec_${Buffer.from(key).toString('base64')}`
        const headers = signed({ webhookId: 'msg_1', atMs: Date.now(), body }, secret)
        expect(received(body, headers, secret)).toEqual(JSON.parse(body))
      }),
    )
  })

  it('does not verify when the id, the time, the body or the secret is another', () => {
    const body = '{"task_id":"1"}'
    const headers = signed({ webhookId: 'msg_1', atMs: Date.now(), body }, SECRET)
    const later = String(Number(headers['webhook-timestamp']) + 1)
    const other = `whsec_${Buffer.alloc(32, 8).toString('base64')}`
    for (const attempt of [
      () => received(body, { ...headers, 'webhook-id': 'msg_2' }),
      () => received(body, { ...headers, 'webhook-timestamp': later }),
      () => received(`${body} `, headers),
      () => received(body, headers, other),
    ]) {
      expect(attempt).toThrow(WebhookVerificationError)
    }
    expect(received(body, headers)).toEqual({ task_id: '1' })
  })

  it('has id and time without a secret, and no signature', () => {
    const message = { webhookId: 'msg_1', atMs: 1_750_000_000_000, body: '{}' }
    expect(webhookHeaders(message, undefined)).toEqual(['webhook-id', 'msg_1', 'webhook-timestamp', '1750000000'])
  })
})
