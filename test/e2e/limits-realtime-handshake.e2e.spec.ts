import { afterEach, describe, expect, it } from '@jest/globals'
import type { TestGateway } from '../support/gateway.js'
import { limitHeaders } from '../support/limit-answers.js'
import { type LimitedRealtime, startLimitedRealtime } from '../support/limited-sessions.js'
import { askUpgrade, headOf, type HttpAnswer, sendUpgrade } from '../support/upgrade-client.js'

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const HEADERS = { authorization: 'Bearer team', 'x-request-id': 'mine-1' }

async function start(limits: object): Promise<LimitedRealtime> {
  const lab = await startLimitedRealtime(limits)
  closers.push(lab.close)
  return lab
}

/** The answer to an upgrade that is granted; its socket stays open until the test is over. */
async function opened({ url }: TestGateway): Promise<HttpAnswer> {
  const socket = await sendUpgrade(url, { headers: HEADERS })
  closers.push(() => Promise.resolve(socket.destroy()))
  return await headOf(socket)
}

const limitsIn = ({ headers }: HttpAnswer): object => limitHeaders({ headers: Object.fromEntries(headers) })

const RESET: unknown = expect.stringMatching(/^(?:1m0s|5\ds)$/)

describe('A session of a key with limits', () => {
  it('begins with what is left of them in the head of its 101', async () => {
    const { gateway } = await start({ requestsPerMinute: 10, realtimeSessions: 2 })
    const granted = await opened(gateway)
    expect([granted.status, granted.headers.get('x-request-id')]).toEqual([101, 'mine-1'])
    expect(limitsIn(granted)).toEqual({
      'x-ratelimit-limit-requests': '10',
      'x-ratelimit-remaining-requests': '9',
      'x-ratelimit-reset-requests': RESET,
    })
  })

  it('that is one too many is refused in the words of chat, with what is left and when to come back', async () => {
    const { gateway, upstream } = await start({ requestsPerMinute: 10, realtimeSessions: 1 })
    await opened(gateway)
    const refused = await askUpgrade(gateway.url, { headers: HEADERS })
    expect(refused.status).toBe(429)
    expect(JSON.parse(refused.body.toString())).toEqual({
      error: {
        message:
          'The limit of 1 realtime sessions at once of this API key (key:team) is reached. ' +
          'Try again once one of them has ended.',
        type: 'rate_limit_error',
        param: null,
        code: 'concurrency_limit_exceeded',
      },
    })
    expect(refused.headers.get('content-type')).toBe('application/json')
    expect(refused.headers.get('x-request-id')).toBe('mine-1')
    expect(limitsIn(refused)).toEqual({
      'retry-after': '1',
      'x-gateway-limit': 'realtimeSessions; scope=key:team; reset=1',
      'x-ratelimit-limit-requests': '10',
      'x-ratelimit-remaining-requests': '9',
      'x-ratelimit-reset-requests': RESET,
    })
    expect(upstream.requests).toHaveLength(1)
  })

  it('that no request is left for is refused until the minute is over', async () => {
    const { gateway, upstream } = await start({ requestsPerMinute: 1 })
    await opened(gateway)
    const refused = await askUpgrade(gateway.url, { headers: HEADERS })
    const seconds = refused.headers.get('retry-after') ?? ''
    expect(Number(seconds)).toBeGreaterThan(50)
    expect(Number(seconds)).toBeLessThanOrEqual(60)
    const limit = 'The limit of 1 requests per minute of this API key (key:team)'
    expect(refused.status).toBe(429)
    expect(JSON.parse(refused.body.toString())).toEqual({
      error: {
        message: `${limit} is used up. It is reset in ${seconds} s.`,
        type: 'rate_limit_error',
        param: null,
        code: 'rate_limit_exceeded',
      },
    })
    expect(limitsIn(refused)).toEqual({
      'retry-after': seconds,
      'x-gateway-limit': `requestsPerMinute; scope=key:team; reset=${seconds}`,
      'x-ratelimit-limit-requests': '1',
      'x-ratelimit-remaining-requests': '0',
      'x-ratelimit-reset-requests': RESET,
    })
    expect(upstream.requests).toHaveLength(1)
  })
})
