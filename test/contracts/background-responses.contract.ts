import { describe, expect, it } from '@jest/globals'
import type { UsageRecord } from '../../src/core/usage-record.js'
import type { BackgroundResponseRow, BackgroundResponses } from '../../src/responses/background-responses.js'

const NOW_MS = 1_750_000_000_000

/** The store under test, and what it has beside. */
export interface BackgroundStore {
  readonly responses: BackgroundResponses
  /** Ids of the usage records of an owner. */
  readonly recordsOf: (ownerId: string) => Promise<readonly string[]>
  /** Those of these ids that are pinned for the owner. */
  readonly pinnedOf: (ownerId: string, ids: readonly string[]) => Promise<readonly string[]>
}

let count = 0

/** With ids that no test has used, due now. */
function someRow(given: Partial<BackgroundResponseRow> = {}): BackgroundResponseRow {
  count += 1
  return {
    ownerId: `owner-${count}`,
    id: `resp_background_${count}`,
    channelId: 'main',
    model: 'gpt-5-mini',
    route: '/v1/responses',
    createdAtMs: NOW_MS - 2000,
    nextPollAtMs: NOW_MS,
    polls: 0,
    misses: 0,
    ...given,
  }
}

const recordOf = ({ id, ownerId }: BackgroundResponseRow): UsageRecord => ({
  id: `task response main ${id}`,
  atMs: NOW_MS,
  requestId: null,
  keyId: ownerId,
  ownerId,
  kind: 'task',
  route: '/v1/responses',
  model: 'gpt-5-mini',
  channelId: 'main',
  outcome: 'ok',
  durationMs: 2000,
  units: { promptTokens: 7, completionTokens: 5 },
  reported: '{"input_tokens":7,"output_tokens":5}',
  estimated: null,
  pricing: 'unpriced',
  cost: null,
})

const claimOf = (responses: BackgroundResponses, more: object = {}): Promise<readonly BackgroundResponseRow[]> =>
  responses.claimDue({ nowMs: NOW_MS, lockedUntilMs: NOW_MS + 60_000, limit: 10, exceptChannels: [], ...more })

/** What every store of responses in the background does; `storeOf` is asked anew in each test, whose store is empty. */
export function describeBackgroundResponses(name: string, storeOf: () => BackgroundStore): void {
  describe(`responses in the background in ${name}`, () => {
    it('are found by their owner alone, as they were first written', async () => {
      const { responses } = storeOf()
      const row = someRow()
      await responses.check()
      await responses.begin(row)
      await responses.begin({ ...row, channelId: 'other', nextPollAtMs: NOW_MS + 1 })
      expect(await responses.find(row.ownerId, row.id)).toEqual(row)
      expect(await responses.find('another', row.id)).toBeUndefined()
    })

    it('are claimed once, in the order in which they are due, so many at once and no others', async () => {
      const { responses } = storeOf()
      const [late, early, busy, later] = [
        someRow(),
        someRow({ nextPollAtMs: NOW_MS - 5 }),
        someRow({ channelId: 'busy', nextPollAtMs: NOW_MS - 9 }),
        someRow({ nextPollAtMs: NOW_MS + 1 }),
      ]
      for (const row of [late, early, busy, later]) await responses.begin(row)
      expect(await responses.nextDueAtMs()).toBe(NOW_MS - 9)
      expect(await claimOf(responses, { limit: 1, exceptChannels: ['busy'] })).toEqual([early])
      expect(await claimOf(responses, { exceptChannels: ['busy'] })).toEqual([late])
      expect(await claimOf(responses)).toEqual([busy])
      expect(await claimOf(responses)).toEqual([])
      expect(await responses.nextDueAtMs()).toBe(later.nextPollAtMs)
    })

    it('are claimed again when a lease has run out, or was given back', async () => {
      const { responses } = storeOf()
      const row = someRow()
      await responses.begin(row)
      await claimOf(responses)
      expect(await claimOf(responses, { nowMs: NOW_MS + 60_000, lockedUntilMs: NOW_MS + 120_000 })).toEqual([row])
      await responses.reschedule(row, row)
      expect(await claimOf(responses)).toEqual([row])
    })

    it('are due when they were planned for, or as soon as they were hastened meanwhile', async () => {
      const { responses } = storeOf()
      const [planned, hastened] = [someRow({ channelId: 'one' }), someRow({ channelId: 'two' })]
      for (const row of [planned, hastened]) await responses.begin(row)
      await claimOf(responses)
      await responses.hasten(hastened.ownerId, hastened.id, NOW_MS - 1)
      const next = { nextPollAtMs: NOW_MS + 4000, polls: 1, misses: 1 }
      for (const row of [planned, hastened]) await responses.reschedule(row, next)
      expect(await claimOf(responses)).toEqual([{ ...hastened, ...next, nextPollAtMs: NOW_MS - 1 }])
      await responses.hasten(planned.ownerId, planned.id, NOW_MS + 9000)
      expect((await responses.find(planned.ownerId, planned.id))?.nextPollAtMs).toBe(NOW_MS + 4000)
    })

    it('end once, with their record and the items of their output', async () => {
      const { responses, recordsOf, pinnedOf } = storeOf()
      const row = someRow()
      await responses.begin(row)
      const record = recordOf(row)
      const ends = [responses.end(row, ['msg_end'], record), responses.end(row, ['msg_other'], record)]
      expect((await Promise.all(ends)).sort()).toEqual([false, true])
      expect(await recordsOf(row.ownerId)).toEqual([record.id])
      expect(await pinnedOf(row.ownerId, ['msg_end', 'msg_other'])).toHaveLength(1)
      expect(await responses.find(row.ownerId, row.id)).toBeUndefined()
      expect(await responses.end(row, [], undefined)).toBe(false)
      await responses.reschedule(row, { nextPollAtMs: NOW_MS, polls: 1, misses: 0 })
      await responses.hasten(row.ownerId, row.id, NOW_MS)
      expect(await responses.nextDueAtMs()).toBeUndefined()
    })

    it('end although they have more items than one statement takes', async () => {
      const { responses, pinnedOf } = storeOf()
      const row = someRow()
      await responses.begin(row)
      const itemIds = Array.from({ length: 14_000 }, (_, index) => `msg_${row.id}_${index}`)
      expect(await responses.end(row, itemIds, undefined)).toBe(true)
      const ends = [itemIds[0], itemIds[13_999]].map(String)
      expect((await pinnedOf(row.ownerId, ends)).toSorted()).toEqual(ends)
    })

    it('are planned no later than can be after the clock was set back', async () => {
      const { responses } = storeOf()
      const [far, near] = [someRow({ nextPollAtMs: NOW_MS + 9_000_000 }), someRow({ nextPollAtMs: NOW_MS + 10 })]
      for (const row of [far, near]) await responses.begin(row)
      await responses.bringForward({ pollAtMs: NOW_MS + 72_000, lockedUntilMs: NOW_MS + 60_000 })
      expect((await responses.find(far.ownerId, far.id))?.nextPollAtMs).toBe(NOW_MS + 72_000)
      expect((await responses.find(near.ownerId, near.id))?.nextPollAtMs).toBe(NOW_MS + 10)
      await claimOf(responses, { nowMs: NOW_MS + 10, lockedUntilMs: NOW_MS + 9_000_000 })
      await responses.bringForward({ pollAtMs: NOW_MS + 72_000, lockedUntilMs: NOW_MS + 60_000 })
      expect(await responses.nextDueAtMs()).toBe(NOW_MS + 60_000)
    })
  })
}
