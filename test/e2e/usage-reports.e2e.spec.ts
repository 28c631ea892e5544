import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import pg from 'pg'
import type { LimitsResponse } from '../../src/account/account.controller.js'
import { UsageReports } from '../../src/usage/usage.repository.js'
import { ADMIN_KEY, adminCaller } from '../support/admin-lab.js'
import { eventually, promised } from '../support/eventually.js'
import {
  CHAT_PATH,
  chatText,
  type ErrorBody,
  type RawAnswer,
  sendRaw,
  SPEECH_PATH,
  speechText,
  startGateway,
  TEST_KEY,
  type TestGateway,
} from '../support/gateway.js'
import { shareLab } from '../support/lab-lifetime.js'
import { askLimits } from '../support/limited-gateway.js'
import { withLab } from '../support/provider-gateways.js'
import { startPostgres, type TestPostgres } from '../support/stores.js'
import { OTHER_KEY } from '../support/task-gateways.js'
import {
  getUsage,
  recordsOf,
  recordWhere,
  type ShownRecord,
  startUsageLab,
  type UsageLab,
} from '../support/usage-lab.js'

describe('usage reports', () => {
  interface Sums {
    readonly object: string
    readonly from: string
    readonly to: string
    readonly data: readonly Readonly<Record<string, unknown>>[]
  }
  interface Page {
    readonly data: readonly ShownRecord[]
    readonly has_more: boolean
    readonly next_cursor: string | null
  }

  const CHATS = 7
  const DAY_MS = 86_400_000

  let lab: UsageLab

  function chat(requestId: string, key = TEST_KEY): Promise<unknown> {
    const headers = { authorization: `Bearer ${key}`, 'x-request-id': requestId }
    return sendRaw(lab.gateway.url, { path: CHAT_PATH, body: chatText('Hello'), headers })
  }

  shareLab(async () => (lab = await startUsageLab()))
  beforeAll(async () => {
    for (let count = 0; count < CHATS; count++) await chat('the-same-id')
    await lab.recorded({ path: SPEECH_PATH, body: speechText('Hello.') })
    await chat('of-another-caller', OTHER_KEY)
    await chat('refused', 'no')
    await recordWhere(lab.gateway, ({ route }) => route === SPEECH_PATH)
  })

  const sums = async (query = ''): Promise<Sums> => (await getUsage<Sums>(lab.gateway, query)).body

  describe('GET /v1/usage', () => {
    it('sums what the key has used in the last day, whatever request ids its calls chose', async () => {
      const { object, from, to, data } = await sums()
      expect(object).toBe('usage')
      expect(Date.parse(to) - Date.parse(from)).toBe(DAY_MS)
      const records = await recordsOf(lab.gateway)
      expect(records).toHaveLength(CHATS + 1)
      const total = (unit: string): number => records.reduce((sum, { units }) => sum + (units[unit] ?? 0), 0)
      expect(data).toEqual([
        {
          records: CHATS + 1,
          unpriced_records: 0,
          units: expect.objectContaining({
            prompt_tokens: total('prompt_tokens'),
            completion_tokens: total('completion_tokens'),
            characters: 6,
          }),
          cost: expect.stringMatching(/^0\.\d+$/),
        },
      ])
      const micros = records.reduce((sum, { cost }) => sum + BigInt(Math.round(Number(cost) * 1e9)), 0n)
      expect(BigInt(Math.round(Number(data[0]?.['cost']) * 1e9))).toBe(micros)
    })

    it('groups by model, channel and day', async () => {
      expect((await sums('?group_by=model')).data).toMatchObject([
        { model: 'gpt-4o-mini', records: CHATS },
        { model: 'tts-1', records: 1, units: { characters: 6 }, cost: '0.00009' },
      ])
      expect((await sums('?group_by=channel')).data).toMatchObject([{ channel: 'p1-main', records: CHATS + 1 }])
      const days = (await sums('?group_by=day')).data.map(({ day }) => String(day))
      expect(days).toEqual([...new Set((await recordsOf(lab.gateway)).map(({ at }) => at.slice(0, 10)))].sort())
    })

    it('shows no other caller’s', async () => {
      expect((await getUsage<Sums>(lab.gateway, '', OTHER_KEY)).body.data).toMatchObject([{ records: 1 }])
      const theirs = await recordsOf(lab.gateway, OTHER_KEY)
      expect(theirs.map(({ request_id: id }) => id)).toEqual(['of-another-caller'])
      const mine = await recordsOf(lab.gateway)
      expect(mine.map(({ request_id: id }) => id)).not.toContain('of-another-caller')
    })

    it('sums any period that is asked for', async () => {
      expect((await sums('?from=2020-01-01&to=2020-01-02')).data).toMatchObject([{ records: 0, units: {}, cost: '0' }])
      const soon = Math.ceil(Date.now() / 1000) + 60
      expect((await sums(`?from=${soon - 92 * 86_400}&to=${soon}`)).data).toMatchObject([{ records: CHATS + 1 }])
      expect(await sums('?from=2020-01-01T00:00:00%2B01:00&to=2020-01-02&group_by=model')).toMatchObject({
        from: '2019-12-31T23:00:00.000Z',
        to: '2020-01-02T00:00:00.000Z',
        data: [],
      })
    })

    it.each([
      ['?from=yesterday', 'from'],
      ['?to=2020', 'to'],
      ['?from=2026-02-01&to=2026-02-30', 'to'],
      ['?from=2020-01-02&to=2020-01-01', 'from'],
      ['?from=0', 'from'],
      ['?group_by=key', 'group_by'],
      ['?group_by=model&group_by=day', 'group_by'],
      ['?form=2020-01-01', 'form'],
      ['/records?limit=0', 'limit'],
      ['/records?cursor=nonsense', 'cursor'],
      ['/records?group_by=day', 'group_by'],
    ])('refuses %s and names the parameter', async (query, param) => {
      const { status, body } = await getUsage<ErrorBody>(lab.gateway, query)
      expect([status, body.error]).toMatchObject([400, { type: 'invalid_request_error', param }])
    })

    it.each(['', '/records'])('asks for a key%s', async (path) => {
      expect((await getUsage(lab.gateway, path, 'wrong')).status).toBe(401)
    })
  })

  describe('GET /v1/usage/records', () => {
    it('pages through all records once, newest first', async () => {
      const seen: ShownRecord[] = []
      for (let query: string | undefined = '?limit=3'; query !== undefined;) {
        const { body }: { body: Page } = await getUsage<Page>(lab.gateway, `/records${query}`)
        seen.push(...body.data)
        expect(body.has_more).toBe(body.next_cursor !== null)
        expect(body.data.length).toBeLessThanOrEqual(3)
        query = body.next_cursor === null ? undefined : `?limit=3&cursor=${body.next_cursor}`
      }
      expect(seen).toEqual(await recordsOf(lab.gateway))
      const times = seen.map(({ at }) => at)
      expect(times).toEqual([...times].sort().reverse())
    })

    it('has no further page behind one that is just full', async () => {
      const { body } = await getUsage<Page>(lab.gateway, `/records?limit=${CHATS + 1}`)
      expect([body.data.length, body.has_more, body.next_cursor]).toEqual([CHATS + 1, false, null])
    })

    it('counts no reading of itself', async () => {
      const before = await recordsOf(lab.gateway)
      expect(await recordsOf(lab.gateway)).toEqual(before)
    })
  })

  describe('The operator’s sums', () => {
    it('are those of all keys, or of one', async () => {
      const reports = lab.gateway.application.get(UsageReports, { strict: false })
      const ever = { fromMs: 0, toMs: Date.now() + DAY_MS }
      expect(await reports.sums({ ...ever, groupBy: ['key', 'model'] })).toMatchObject([
        { keyId: 'other', model: 'gpt-4o-mini', records: 1 },
        { keyId: 'test', model: 'gpt-4o-mini', records: CHATS },
        { keyId: 'test', model: 'tts-1', records: 1 },
      ])
      expect(await reports.sums({ ...ever, groupBy: [], keyId: 'test', model: 'tts-1' })).toMatchObject([
        { records: 1 },
      ])
    })
  })

  describe('A gateway that is not to store usage', () => {
    it('reports it, and serves', async () => {
      await withLab(startUsageLab({ usage: { store: false } }), async ({ gateway }) => {
        const answer = await sendRaw(gateway.url, { path: CHAT_PATH, body: chatText('Hello') })
        expect(answer.status).toBe(200)
        const { status, body } = await getUsage<ErrorBody>(gateway)
        expect([status, body.error]).toMatchObject([404, { code: 'usage_not_stored' }])
      })
    })
  })
})

describe('usage reports load', () => {
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
  })
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
        expect(performance.now() - startedAtMs).toBeLessThan(promised(DEAD_WITHIN_MS))
        isOver = true
        await Promise.all(callers)
        expect(there.logText()).not.toContain('the keys of the store cannot be read')
      })
    })

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
    })

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
    })
  })

  describe('A report', () => {
    it('counts as a request at once, and never as one of its minute', async () => {
      for (let count = 0; count < 3; count++) expect((await ask(here, '/v1/usage', 'places')).status).toBe(200)
      await whileSumsTakeLong(async () => {
        const first = ask(here, '/v1/usage', 'places')
        const limits = async (): Promise<LimitsResponse['limits']> => (await askLimits(here.url, 'places')).limits
        await eventually(async () => (await limits())['concurrency']?.in_use === 1)
        expect((await limits())['requestsPerMinute']).toMatchObject({ remaining: 1 })
        for (const path of ['/v1/usage', '/v1/usage/records']) {
          const { status, text } = await ask(here, path, 'places')
          expect([status, JSON.parse(text)]).toMatchObject([429, { error: { code: 'concurrency_limit_exceeded' } }])
        }
        await first
      })
    })

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
})
