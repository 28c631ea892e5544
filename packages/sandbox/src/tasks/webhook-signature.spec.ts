import { describe, expect, it } from '@jest/globals'
import { Webhook } from 'standardwebhooks'

import { isSignedWith, webhookHeaders } from './webhook-signature.js'

const SECRET = 'whsec_dGVzdHNlY3JldHRlc3RzZWNyZXR0ZXN0c2VjcmV0MTI='

describe('a signature of Standard Webhooks', () => {
  it('is the one of the published example', () => {
    const body =
      '{"id":"1234567890","status":"succeeded","message":"","create_time":1781080778802,"update_time":1781080794151}'
    expect(webhookHeaders(SECRET, '9876543210', 1_781_080_794, body)).toEqual({
      'webhook-id': '9876543210',
      'webhook-timestamp': '1781080794',
      'webhook-signature': 'v1,UsKlJP00XoQyOn410NM9xv34sP+Gl0jnOO9Lcpr7NJ4=',
    })
  })

  it('is accepted by the reference implementation, and the other way round', () => {
    const seconds = Math.floor(Date.now() / 1000)
    const headers = webhookHeaders(SECRET, 'msg_1', seconds, '{"a":1}')
    expect(new Webhook(SECRET).verify('{"a":1}', { ...headers })).toEqual({ a: 1 })
    const theirs = new Webhook(SECRET).sign('msg_1', new Date(seconds * 1000), '{"a":1}')
    expect(theirs).toBe(headers['webhook-signature'])
  })

  it('is right for one body, id, time and secret only, and may stand among others', () => {
    const nowMs = 1_781_080_794_000
    const headers = { ...webhookHeaders(SECRET, 'msg_1', nowMs / 1000, 'body') }
    expect(isSignedWith(SECRET, headers, 'body', nowMs)).toBe(true)
    const among = { ...headers, 'webhook-signature': `v1,AAAA ${headers['webhook-signature']}` }
    expect(isSignedWith(SECRET, among, 'body', nowMs)).toBe(true)
    expect(isSignedWith(SECRET, headers, 'other', nowMs)).toBe(false)
    expect(isSignedWith(SECRET, { ...headers, 'webhook-id': 'msg_2' }, 'body', nowMs)).toBe(false)
    expect(isSignedWith(`whsec_${Buffer.alloc(32).toString('base64')}`, headers, 'body', nowMs)).toBe(false)
    expect(isSignedWith(SECRET, headers, 'body', nowMs + 300_000)).toBe(true)
    expect(isSignedWith(SECRET, headers, 'body', nowMs + 301_000)).toBe(false)
    expect(isSignedWith(SECRET, { ...headers, 'webhook-timestamp': 'soon' }, 'body', nowMs)).toBe(false)
    expect(isSignedWith(SECRET, {}, 'body', nowMs)).toBe(false)
  })
})
