import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import pg from 'pg'
import type { LimitsAnswer } from '../../src/account/limits.service.js'
import { ADMIN_KEY, adminCaller } from '../support/admin-caller.js'
import { askLimits } from '../support/asked-limits.js'
import { eventually } from '../support/eventually.js'
import { startGateway, TEST_KEY, type TestGateway } from '../support/gateway.js'
import { startPostgres, type TestPostgres } from '../support/postgres.js'
import { type ErrorBody, type RawAnswer, sendRaw } from '../support/raw-http.js'
import { STORE_START_MS } from '../support/stores.js'
import { getUsage } from '../support/usage-lab.js'

/** What is promised for every replica. */
const DEAD_WITHIN_MS = 5_000

const REPORTS = 40

const BUSY = 'Other reports of usage are being made. Try again in a moment.'

let postgres: TestPostgres
let here: TestGateway
let there: TestGateway
let holder: pg.Client

beforeAll(async () => {
  postgres = await startPostgres()
  const url = await postgres.emptyDatabase()
  const keys = [
    { id: 'test', key: TEST_KEY },
    { id: 'other', key: 'other' },
    { id: 'places', key: 'places', limits: { concurrency: 1, requestsPerMinute: 1 } },
  ]
  const sections = { auth: { keys, adminKey: ADMIN_KEY }, database: { url } }
  here = await startGateway({ channels: [], sections })
  there = await startGateway({ channels: [], sections })
  holder = new pg.Client({ connectionString: url })
  await holder.connect()
}, STORE_START_MS)
afterAll(async () => {
  await holder.end()
  await here.close()
  await there.close()
  await postgres.close()
})

const ask = (gateway: TestGateway, path: string, key: string): Promise<RawAnswer> =>
  sendRaw(gateway.url, { method: 'GET', path, headers: { authorization: `Bearer ${key}` } })

/** No report is made meanwhile, nor does one fail: each waits with a connection of its own. */
async function whileSumsTakeLong(work: () => Promise<void>): Promise<void> {
  await holder.query('begin')
  await holder.query('lock table usage_record in access exclusive mode')
  try {
    await work()
  } finally {
    await holder.query('rollback')
  }
}

describe('Many reports at once', () => {
  it('do not delay the end of a revoked key', async () => {
    const { id, key } = await adminCaller(here.url).issue()
    await eventually(async () => (await ask(there, '/v1/models', key)).status === 200)
    await whileSumsTakeLong(async () => {
      let isOver = false
      const statuses = new Set<number>()
      const askOn = async (): Promise<void> => {
        while (!isOver) statuses.add((await ask(there, '/v1/usage', TEST_KEY)).status)
      }
      const callers = Array.from({ length: REPORTS }, askOn)
      await eventually(() => statuses.has(503))
      const startedAtMs = performance.now()
      await adminCaller(here.url).call('DELETE', `/keys/${id}`)
      await eventually(async () => (await ask(there, '/v1/models', key)).status === 401)
      expect(performance.now() - startedAtMs).toBeLessThan(DEAD_WITHIN_MS)
      isOver = true
      await Promise.all(callers)
      expect(there.logText()).not.toContain('the keys of the store cannot be read')
    })
  }, 60_000)

  it('keep no operator from the sums of all', async () => {
    await whileSumsTakeLong(async () => {
      const callers = [TEST_KEY, 'places', 'other'].map((key) => ask(there, '/v1/usage', key))
      expect((await Promise.race(callers)).status).toBe(503)
      // The lock ends this report, too, by the time limit of statements; it was begun, as one past the places is not.
      const { json } = await adminCaller(there.url).call('GET', '/usage')
      expect(json).not.toMatchObject({ error: { message: BUSY } })
      await Promise.all(callers)
    })
    expect((await adminCaller(there.url).call('GET', '/usage')).status).toBe(200)
  }, 60_000)

  it('are refused to a caller from the second on, with the time to come again', async () => {
    await whileSumsTakeLong(async () => {
      const answers = Array.from({ length: 2 }, () => ask(there, '/v1/usage/records', TEST_KEY))
      const refused = await Promise.race(answers)
      expect([refused.status, refused.headers['retry-after']]).toEqual([503, '1'])
      expect(JSON.parse(refused.text)).toMatchObject({
        error: { type: 'overloaded_error', code: 'overloaded', message: BUSY },
      })
      await Promise.all(answers)
    })
    expect((await ask(there, '/v1/usage/records', TEST_KEY)).status).toBe(200)
  }, 60_000)
})

describe('A report', () => {
  it('counts as a request at once, and never as one of its minute', async () => {
    for (let count = 0; count < 3; count++) expect((await ask(here, '/v1/usage', 'places')).status).toBe(200)
    await whileSumsTakeLong(async () => {
      const first = ask(here, '/v1/usage', 'places')
      const limits = async (): Promise<LimitsAnswer['limits']> => (await askLimits(here.url, 'places')).limits
      await eventually(async () => (await limits())['concurrency']?.in_use === 1)
      expect((await limits())['requestsPerMinute']).toMatchObject({ remaining: 1 })
      for (const path of ['/v1/usage', '/v1/usage/records']) {
        const { status, text } = await ask(here, path, 'places')
        expect([status, JSON.parse(text)]).toMatchObject([429, { error: { code: 'concurrency_limit_exceeded' } }])
      }
      await first
    })
  }, 60_000)

  it.each(['', '/records'])('covers 92 days at most: /v1/usage%s', async (path) => {
    const within = await getUsage(here, `${path}?from=2026-01-01&to=2026-04-03`)
    expect(within.status).toBe(200)
    const { status, body } = await getUsage<ErrorBody>(here, `${path}?from=2026-01-01&to=2026-04-04`)
    expect([status, body.error]).toMatchObject([400, { param: 'from', code: 'invalid_value' }])
    expect(body.error.message).toContain('at most 92 days before to')
  })

  it('covers 366 days at most for the operator: a leap year', async () => {
    const operator = adminCaller(here.url)
    expect((await operator.call('GET', '/usage?from=2024-01-01&to=2025-01-01')).status).toBe(200)
    for (const query of ['from=2024-01-01&to=2025-01-02', 'from=0']) {
      const { status, json } = await operator.call('GET', `/usage?${query}`)
      expect([status, json['error']]).toMatchObject([400, { param: 'from', code: 'invalid_value' }])
      expect(json['error']).toMatchObject({ message: expect.stringContaining('at most 366 days before to') })
    }
  })
})
