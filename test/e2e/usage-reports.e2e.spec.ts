import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { UsageReports } from '../../src/usage/usage-usage-reports.js'
import { CHAT_PATH, chatText, SPEECH_PATH, speechText } from '../support/chat-bodies.js'
import { TEST_KEY } from '../support/gateway.js'
import { type ErrorBody, sendRaw } from '../support/raw-http.js'
import { STORE_START_MS } from '../support/stores.js'
import { OTHER_KEY } from '../support/task-gateways.js'
import {
  getUsage,
  recordsOf,
  recordWhere,
  type ShownRecord,
  startUsageLab,
  type UsageLab,
} from '../support/usage-lab.js'

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

const chat = (requestId: string, key = TEST_KEY): Promise<unknown> =>
  sendRaw(lab.gateway.url, {
    path: CHAT_PATH,
    body: chatText('Hello'),
    headers: { authorization: `Bearer ${key}`, 'x-request-id': requestId },
  })

beforeAll(async () => {
  lab = await startUsageLab()
  for (let count = 0; count < CHATS; count++) await chat('the-same-id')
  await lab.recorded({ path: SPEECH_PATH, body: speechText('Hello.') })
  await chat('somebody-else', OTHER_KEY)
  await sendRaw(lab.gateway.url, { path: CHAT_PATH, body: chatText('Hello'), headers: { authorization: 'Bearer no' } })
  await recordWhere(lab.gateway, ({ route }) => route === SPEECH_PATH)
}, STORE_START_MS)
afterAll(() => lab.close())

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

  it('shows nobody else’s', async () => {
    expect((await getUsage<Sums>(lab.gateway, '', OTHER_KEY)).body.data).toMatchObject([{ records: 1 }])
    const theirs = await recordsOf(lab.gateway, OTHER_KEY)
    expect(theirs.map(({ request_id: id }) => id)).toEqual(['somebody-else'])
    const mine = await recordsOf(lab.gateway)
    expect(mine.map(({ request_id: id }) => id)).not.toContain('somebody-else')
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
    expect(await reports.sums({ ...ever, groupBy: [], keyId: 'test', model: 'tts-1' })).toMatchObject([{ records: 1 }])
  })
})

describe('A gateway that is not to store usage', () => {
  it('says so to whoever asks, and serves', async () => {
    const silent = await startUsageLab({ usage: { store: false } })
    try {
      const answer = await sendRaw(silent.gateway.url, { path: CHAT_PATH, body: chatText('Hello') })
      expect(answer.status).toBe(200)
      const { status, body } = await getUsage<ErrorBody>(silent.gateway)
      expect([status, body.error]).toMatchObject([404, { code: 'usage_not_stored' }])
    } finally {
      await silent.close()
    }
  })
})
