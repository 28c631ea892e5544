import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { eventually } from '../support/eventually.js'
import { type LimitedGateway, startLimitedGateway } from '../support/limited-gateway.js'

let lab: LimitedGateway

beforeAll(async () => {
  lab = await startLimitedGateway({
    reads: { requestsPerMinute: 1 },
    places: { concurrency: 1 },
    free: undefined,
  })
})
afterAll(() => lab.close())

describe('A limit of requests', () => {
  it('is not touched by reads, and questions about limits are free', async () => {
    for (let count = 0; count < 3; count++) {
      const answer = await lab.get('reads', '/v1/models')
      expect([answer.status, answer.headers.get('x-ratelimit-remaining-requests')]).toEqual([200, '1'])
    }
    await lab.limits('reads')
    expect((await lab.chat('reads')).status).toBe(200)
    expect((await lab.chat('reads')).status).toBe(429)
    expect((await lab.get('reads', '/v1/models')).status).toBe(200)
    expect((await lab.limits('reads')).limits['requestsPerMinute']).toMatchObject({ limit: 1, remaining: 0 })
  })
})

describe('A limit of requests at once', () => {
  it('is free again whatever becomes of the call that filled it', async () => {
    const inUse = async (): Promise<number | undefined> => (await lab.limits('places')).limits['concurrency']?.in_use
    const controller = new AbortController()
    const hanging = lab.chat('places', '#hang', {}, controller.signal).catch(() => 'aborted')
    await eventually(async () => (await inUse()) === 1)
    const refused = await lab.chat('places')
    expect(refused.status).toBe(429)
    expect(refused.headers.get('retry-after')).toBe('1')
    expect(refused.headers.get('x-gateway-limit')).toBe('concurrency; scope=key:places; reset=1')
    expect(await refused.json()).toMatchObject({ error: { code: 'concurrency_limit_exceeded' } })
    const read = await lab.get('places', '/imggen/task/1/fetch')
    expect([read.status, await read.json()]).toMatchObject([429, { code: 1303 }])
    controller.abort()
    expect(await hanging).toBe('aborted')
    await eventually(async () => (await inUse()) === 0)
    for (const text of ['Hello', '#500', '#cut', '#reset', 'Hello']) {
      const answer = await lab.chat('places', text)
      expect(answer.status).not.toBe(429)
      await answer.text().catch(() => 'cut')
      await eventually(async () => (await inUse()) === 0)
    }
    expect((await lab.post('places', '/v1/chat/completions', '{')).status).toBe(400)
    await eventually(async () => (await inUse()) === 0)
  })
})

describe('A key without limits', () => {
  it('hears of none but those of the upstream', async () => {
    const answer = await lab.chat('free')
    expect([answer.status, answer.headers.get('x-gateway-limit')]).toEqual([200, null])
    const told = ['limit', 'remaining', 'reset'].map((what) => answer.headers.get(`x-ratelimit-${what}-requests`))
    expect(told).toEqual(['10000', '9999', '6ms'])
    expect(await lab.limits('free')).toEqual({ object: 'limits', scope: 'key:free', shared: false, limits: {} })
  })
})
