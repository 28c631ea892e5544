import { describe, expect, it } from '@jest/globals'
import { Big } from 'big.js'
import { type CountedUnits, UNITS, type UsageRecord } from '../../src/core/usage-record.js'
import type { UsageGroup, UsageQuery, UsageRepository, UsageSum } from '../../src/usage/usage.repository.js'
import { seededRandom } from '../support/eventually.js'
import { NOON_MS, usageRecord } from '../support/task-rows.js'

const GROUPS: Readonly<Record<UsageGroup, (record: UsageRecord) => Partial<UsageSum>>> = {
  day: ({ atMs }) => ({ day: new Date(atMs).toISOString().slice(0, 'YYYY-MM-DD'.length) }),
  model: ({ model }) => ({ model }),
  channel: ({ channelId }) => ({ channelId }),
  key: ({ keyId }) => ({ keyId }),
}

/** The sums that a store has to come to, from the records themselves. */
function expectedSums(all: readonly UsageRecord[], question: UsageQuery): readonly UsageSum[] {
  const groups = new Map<string, UsageRecord[]>()
  if (question.groupBy.length === 0) groups.set('{}', [])
  for (const record of all.filter((each) => isAsked(each, question))) {
    const name = JSON.stringify(Object.assign({}, ...question.groupBy.map((group) => GROUPS[group](record))))
    groups.set(name, [...(groups.get(name) ?? []), record])
  }
  const sums = [...groups].map(([name, records]) => ({ ...(JSON.parse(name) as Partial<UsageSum>), ...sumOf(records) }))
  return sums.sort((one, other) => (orderOf(one, question) < orderOf(other, question) ? -1 : 1))
}

/** What is null comes last. */
const orderOf = (sum: UsageSum, { groupBy }: UsageQuery): string =>
  groupBy.map((group) => sum[group === 'channel' ? 'channelId' : group === 'key' ? 'keyId' : group] ?? '~').join(' ')

const isAsked = (record: UsageRecord, { fromMs, toMs, ownerId, keyId, model, channelId }: UsageQuery): boolean =>
  record.atMs >= fromMs &&
  record.atMs < toMs &&
  (ownerId ?? record.ownerId) === record.ownerId &&
  (keyId ?? record.keyId) === record.keyId &&
  (model ?? record.model) === record.model &&
  (channelId ?? record.channelId) === record.channelId

function sumOf(records: readonly UsageRecord[]): Omit<UsageSum, 'day' | 'model' | 'channelId' | 'keyId'> {
  const units: Record<string, number> = {}
  for (const unit of UNITS) {
    const counts = records.flatMap((record) => record.units[unit] ?? [])
    if (counts.length > 0) units[unit] = Number(totalOf(counts))
  }
  return {
    records: records.length,
    unpricedRecords: records.filter(({ pricing }) => pricing === 'unpriced').length,
    units,
    cost: totalOf(records.map(({ cost }) => cost ?? 0)),
  }
}

const totalOf = (numbers: readonly (string | number)[]): string =>
  numbers.reduce((sum, number) => sum.plus(number), new Big(0)).toFixed()

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const EVER = { fromMs: 0, toMs: NOON_MS * 2 }
const LIMIT = 100

const EVERYTHING: CountedUnits = {
  promptTokens: 1,
  cachedTokens: 2,
  cachedAudioTokens: 3,
  cacheWriteTokens: 4,
  cacheWriteHourTokens: 5,
  audioInputTokens: 6,
  completionTokens: 7,
  audioOutputTokens: 8,
  reasoningTokens: 9,
  characters: 10,
  audioSeconds: 1.7000000476837158,
  videos: 12,
  images: 13,
  documents: 14,
  pages: 15,
}

/** What every store of usage does, wherever its rows lie; `repository` is asked anew in each test and empty then. */
export function describeUsageRepository(name: string, repository: () => UsageRepository): void {
  const page = { ownerId: 'team-a', ...EVER, limit: LIMIT }
  const sums = (question: Partial<UsageQuery> = {}) => repository().sums({ ...EVER, groupBy: [], ...question }, LIMIT)

  describe(`usage in ${name}`, () => {
    it('comes back as it was written, to the last digit', async () => {
      const records = [
        usageRecord({ atMs: NOON_MS + 3, units: EVERYTHING, cost: '123456789012.000000000001' }),
        usageRecord({
          atMs: NOON_MS + 2,
          units: { promptTokens: 0 },
          cost: null,
          pricing: 'unpriced',
          estimated: '{"a":1.0}',
        }),
        usageRecord({
          atMs: NOON_MS + 1,
          id: 'task video 1',
          requestId: null,
          kind: 'task',
          model: `it's a "model" \\ 😀`,
          channelId: null,
          outcome: 'caller_left',
          durationMs: null,
          units: {},
          reported: null,
          pricing: 'free',
          cost: '0',
        }),
      ]
      await repository().insert(records)
      expect(await repository().list(page)).toEqual(records)
    })

    it('counts a record that stands for many refusals as so many requests, whole hours or not', async () => {
      const refused = { outcome: 'refused', units: {}, reported: null, pricing: 'free', cost: '0' } as const
      const record = usageRecord({ ...refused, reason: 'rate_limit_exceeded', requests: 1485 })
      await repository().insert([record, usageRecord({ ...refused, reason: 'unknown_model' })])
      expect((await repository().list(page)).find(({ id }) => id === record.id)).toEqual(record)
      expect(await sums()).toMatchObject([{ records: 1486, unpricedRecords: 0, cost: '0' }])
      expect(await sums({ fromMs: NOON_MS - 1, toMs: NOON_MS + 1000 })).toMatchObject([{ records: 1486 }])
    })

    it('stays apart from records of its batch that differ in one value alone, be it none or an empty one', async () => {
      const differences: readonly Partial<UsageRecord>[] = [
        {},
        { keyId: 'key-9' },
        { kind: 'response' },
        { route: '/v1/other' },
        { model: null },
        { model: '' },
        { model: '=' },
        { channelId: null },
        { channelId: '' },
        { model: null, channelId: '' },
        { model: '', channelId: null },
        { outcome: 'upstream_failed' },
        { reason: 'unknown_model' },
        { translation: '{"dialects":[]}' },
        { pricing: 'unpriced' },
        {},
      ]
      const records = differences.map((each, index) => usageRecord({ ...each, atMs: NOON_MS - index }))
      const other = usageRecord({ ownerId: 'team-b' })
      await repository().insert([...records, other])
      expect(await repository().list(page)).toEqual(records)
      expect(await repository().list({ ...page, ownerId: 'team-b' })).toEqual([other])
    })

    it('is there once, however often a batch is sent', async () => {
      const batch = [usageRecord(), usageRecord(), usageRecord()]
      await repository().insert(batch.slice(0, 2))
      await repository().insert(batch.map((record) => ({ ...record, cost: '7' })))
      await repository().insert([])
      expect(await sums()).toMatchObject([{ records: 3, cost: '7.2' }])
    })

    it('is one statement for any number of rows, and an id within it twice is one row', async () => {
      const records = Array.from({ length: 5000 }, () => usageRecord())
      await repository().insert([...records, ...records.slice(0, 10)])
      expect(await sums()).toMatchObject([{ records: 5000, units: { promptTokens: 50_000 }, cost: '500' }])
    })

    it('is added up exactly', async () => {
      const cost = '0.000000000001'
      await repository().insert([
        ...Array.from({ length: 10 }, () => usageRecord({ cost, units: { audioSeconds: 0.1 } })),
        usageRecord({ cost: '999999999999', units: EVERYTHING }),
        usageRecord({ cost: null, pricing: 'unpriced', units: { promptTokens: 3 } }),
      ])
      const [sum] = await sums()
      expect(sum).toEqual({
        records: 12,
        unpricedRecords: 1,
        units: { ...EVERYTHING, promptTokens: 4, audioSeconds: 2.7000000476837158 },
        cost: '999999999999.00000000001',
      })
    })

    it('is nothing where there is nothing', async () => {
      expect(await sums()).toEqual([{ records: 0, unpricedRecords: 0, units: {}, cost: '0' }])
      expect(await sums({ groupBy: ['day', 'model', 'key'] })).toEqual([])
      expect(await repository().list(page)).toEqual([])
    })

    it('is grouped by days of UTC, models, channels and keys, in their order', async () => {
      const midnightMs = NOON_MS + DAY_MS / 2
      await repository().insert([
        usageRecord({ atMs: midnightMs, keyId: 'team-b', model: 'tts-1' }),
        usageRecord({ atMs: midnightMs - 1 }),
        usageRecord({ atMs: midnightMs - 2, keyId: 'team-b' }),
        usageRecord({ atMs: midnightMs - 3, model: null, channelId: null }),
      ])
      expect(await sums({ groupBy: ['day'] })).toMatchObject([
        { day: '2026-03-04', records: 3 },
        { day: '2026-03-05', records: 1 },
      ])
      expect(await sums({ groupBy: ['model'] })).toMatchObject([
        { model: 'gpt-4o', records: 2 },
        { model: 'tts-1', records: 1 },
        { model: null, records: 1 },
      ])
      expect(await sums({ groupBy: ['channel'] })).toMatchObject([
        { channelId: 'p1-main', records: 3 },
        { channelId: null, records: 1 },
      ])
      expect(await sums({ groupBy: ['day', 'model', 'key'] })).toMatchObject([
        { day: '2026-03-04', model: 'gpt-4o', keyId: 'team-a' },
        { day: '2026-03-04', model: 'gpt-4o', keyId: 'team-b' },
        { day: '2026-03-04', model: null, keyId: 'team-a' },
        { day: '2026-03-05', model: 'tts-1', keyId: 'team-b' },
      ])
      expect(await repository().sums({ ...EVER, groupBy: ['day', 'model', 'key'] }, 2)).toHaveLength(2)
    })

    it('is summed for one caller, key, model, channel and period alone', async () => {
      await repository().insert([
        usageRecord({ ownerId: 'bearer:1', keyId: 'caller' }),
        usageRecord({ ownerId: 'bearer:2', keyId: 'caller', model: 'tts-1' }),
        usageRecord({ channelId: 'p1-other', atMs: NOON_MS + 1 }),
      ])
      const records = async (question: Partial<UsageQuery>) => (await sums(question))[0]?.records
      expect(await records({ ownerId: 'bearer:1' })).toBe(1)
      expect(await records({ keyId: 'caller' })).toBe(2)
      expect(await records({ keyId: 'caller', model: 'tts-1' })).toBe(1)
      expect(await records({ channelId: 'p1-other' })).toBe(1)
      expect(await records({ channelId: "' or true --" })).toBe(0)
      expect(await records({ fromMs: NOON_MS, toMs: NOON_MS + 1 })).toBe(2)
      expect(await records({ fromMs: NOON_MS + 1, toMs: NOON_MS + 2 })).toBe(1)
    })

    it('is listed for its owner alone, newest first, page by page, without a gap where many are of one instant', async () => {
      const mine = Array.from({ length: 25 }, (_, index) => usageRecord({ atMs: NOON_MS + Math.floor(index / 10) }))
      await repository().insert([...mine, usageRecord({ ownerId: 'team-b' })])
      const seen: string[] = []
      for (let after: { atMs: number; id: string } | undefined; ;) {
        const records = await repository().list({ ...page, limit: 7, ...(after && { after }) })
        const last = records.at(-1)
        if (last === undefined) break
        seen.push(...records.map(({ id }) => id))
        after = { atMs: last.atMs, id: last.id }
      }
      const expected = [...mine].sort((a, b) => b.atMs - a.atMs || (a.id < b.id ? 1 : -1)).map(({ id }) => id)
      expect([...seen].sort()).toEqual([...expected].sort())
      expect(seen).toHaveLength(25)
      const times = await repository().list(page)
      expect(times.map(({ atMs }) => atMs)).toEqual(times.map(({ atMs }) => atMs).sort((a, b) => b - a))
      expect(await repository().list({ ...page, fromMs: NOON_MS + 2, toMs: NOON_MS + 3 })).toHaveLength(5)
    })

    it('is forgotten in small batches, the oldest first, and nothing that is younger', async () => {
      await repository().insert(
        Array.from({ length: 12 }, (_, hour) => usageRecord({ atMs: NOON_MS + hour * HOUR_MS })),
      )
      const beforeMs = NOON_MS + 10 * HOUR_MS
      expect(await repository().prune(beforeMs, 4)).toBe(4)
      expect((await repository().list(page)).at(-1)?.atMs).toBe(NOON_MS + 4 * HOUR_MS)
      expect(await repository().prune(beforeMs, 100)).toBe(6)
      expect(await repository().prune(beforeMs, 100)).toBe(0)
      expect(await sums()).toMatchObject([{ records: 2 }])
    })

    it('is in the sums of its hour until all of that hour is forgotten', async () => {
      await repository().insert(Array.from({ length: 12 }, (_, index) => usageRecord({ atMs: NOON_MS + index })))
      expect(await repository().prune(NOON_MS + HOUR_MS - 1, 100)).toBe(12)
      expect(await repository().list(page)).toEqual([])
      expect(await sums()).toMatchObject([{ records: 12, cost: '1.2' }])
      expect(await repository().prune(NOON_MS + HOUR_MS, 100)).toBeGreaterThanOrEqual(1)
      expect(await sums()).toMatchObject([{ records: 0 }])
    })

    it('is summed over any period, grouped and chosen in any way, as its records are', async () => {
      const random = seededRandom(7)
      const one = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item
      const records = Array.from({ length: 600 }, () =>
        usageRecord({
          atMs: NOON_MS + Math.floor(random() * 8 * HOUR_MS),
          keyId: one(['team-a', 'team-b']),
          ownerId: one(['team-a', 'team-b']),
          model: one(['gpt-4o', 'tts-1', null]),
          channelId: one(['p1-main', 'p1-other', null]),
          units: one([{}, { promptTokens: 3 }, { promptTokens: 0, characters: 7 }, { audioSeconds: 0.1 }]),
          ...one([{ cost: '0.000000000001' }, { cost: '5.5' }, { cost: null, pricing: 'unpriced' as const }]),
        }),
      )
      for (let start = 0; start < records.length; start += 50)
        await repository().insert(records.slice(start, start + 70))
      for (let round = 0; round < 60; round++) {
        const fromMs = NOON_MS + Math.floor(random() * 8 * HOUR_MS)
        const toMs = fromMs + Math.floor(random() * one([HOUR_MS, 8 * HOUR_MS]))
        const question: UsageQuery = {
          ...one([
            { fromMs, toMs },
            { fromMs: fromMs - (fromMs % HOUR_MS), toMs: toMs - (toMs % HOUR_MS) + HOUR_MS },
          ]),
          groupBy: one([[], ['model'], ['channel', 'key'], ['day', 'model', 'key']]),
          ...one([{}, { keyId: 'team-a' }, { ownerId: 'team-b', model: 'tts-1' }, { channelId: 'p1-main' }]),
        }
        expect(await repository().sums(question, 1000)).toEqual(expectedSums(records, question))
      }
    })

    it('counts under no model where it was refused for nothing: names that callers invent are no groups', async () => {
      const refused = { outcome: 'refused', pricing: 'free', units: {}, cost: '0' } as const
      const invented = Array.from({ length: 10_001 }, (_, index) => ({ ...usageRecord(refused), model: `x-${index}` }))
      await repository().insert([...invented, usageRecord(), usageRecord({ outcome: 'refused' })])
      for (const fromMs of [0, NOON_MS - 1, NOON_MS]) {
        const period = { fromMs, toMs: NOON_MS + 1 + fromMs }
        expect(await repository().sums({ ...period, groupBy: ['model'] }, LIMIT)).toMatchObject([
          { model: 'gpt-4o', records: 2 },
          { model: null, records: 10_001, cost: '0' },
        ])
        expect(await repository().sums({ ...period, groupBy: [], model: 'x-7' }, LIMIT)).toMatchObject([{ records: 0 }])
      }
      expect((await repository().list({ ...page, limit: 10_003 })).map(({ model }) => model)).toContain('x-10000')
    })

    it('is written by several at once', async () => {
      const records = Array.from({ length: 400 }, () => usageRecord())
      await Promise.all([0, 50, 100, 150, 200].map((start) => repository().insert(records.slice(start, start + 200))))
      expect(await sums()).toMatchObject([{ records: 400 }])
    })

    it('opens when it is asked to', async () => {
      await expect(repository().open()).resolves.toBeUndefined()
    })
  })
}
