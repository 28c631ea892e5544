import { beforeEach, describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { parseConfig } from '../../test/support/config.js'
import { eventually } from '../../test/support/eventually.js'
import { MemoryUsage } from '../../test/support/usage-writer-lab.js'
import { ConfigStore } from '../config/config-store.js'
import { callerWithOwnBearer, ownerOf } from '../core/caller.js'
import { GatewayError } from '../core/errors.js'
import type { Query } from '../core/dto.js'
import { createLogging } from '../observability/logger.js'
import { Database } from '../storage/database.js'
import type { UsageQueue } from './usage-queue.js'
import { ReportPlaces, StoredUsageReports } from './usage-reports.js'
import { assertKnown, cursorOf, readCursor, readGroups, readLimit, readPeriod } from './usage.dto.js'
import { UsageRetention } from './usage.pg.js'
import type { UsageQuery, UsageSum } from './usage.repository.js'

const BUSY = { kind: 'overloaded', details: { retryAfterSeconds: 1 } }

describe('The places of reports', () => {
  const stranger = (bearer: string): string => ownerOf(callerWithOwnBearer(bearer))

  let places: ReportPlaces
  let ends: (() => void)[]
  beforeEach(() => {
    places = new ReportPlaces()
    ends = []
  })

  const report = (ownerId: string | undefined, callersAtOnce = 2): Promise<void> =>
    places.during(ownerId, callersAtOnce, () => new Promise<void>((resolve) => ends.push(resolve)))

  it('are never all with callers of bearers of their own, however many they invent', async () => {
    const strangers = Promise.allSettled(['one', 'one', 'two', 'three'].map((bearer) => report(stranger(bearer))))
    const known = report('team-a')
    for (const end of ends) end()
    await expect(known).resolves.toBeUndefined()
    const [first, ...others] = await strangers
    expect(first).toMatchObject({ status: 'fulfilled' })
    for (const other of others) expect(other).toMatchObject({ status: 'rejected', reason: BUSY })
  })

  it('are free for the next of them when the one before is done, also where its work failed', async () => {
    await expect(places.during(stranger('one'), 2, () => Promise.reject(new Error('away')))).rejects.toThrow('away')
    const next = report(stranger('two'))
    expect(ends).toHaveLength(1)
    ends[0]?.()
    await next
    const last = report(stranger('three'), 1)
    ends[1]?.()
    await expect(last).resolves.toBeUndefined()
  })

  it('are told apart by key, and no key is taken for a bearer', async () => {
    const underWay = ['bearer', 'team-a'].map((id) => report(id))
    expect(ends).toHaveLength(2)
    await expect(report(stranger('one'))).rejects.toMatchObject(BUSY)
    for (const end of ends) end()
    await Promise.all(underWay)
  })
})

describe('Reports', () => {
  const QUERY = { fromMs: 0, toMs: 1, groupBy: [] } as const
  const by = (ownerId: string): UsageQuery => ({ ...QUERY, ownerId })
  const FEW_CONNECTIONS = { database: { maxConnections: 4 } }
  const PAGE = { fromMs: 0, toMs: 1, ownerId: 'team-a', limit: 1 }
  /** A store whose sums are released by the test. */
  class HeldUsage extends MemoryUsage {
    asked = 0
    private readonly waiting: (() => void)[] = []

    override async sums(): Promise<readonly UsageSum[]> {
      this.asked++
      await new Promise<void>((resolve) => this.waiting.push(resolve))
      return []
    }

    letGo(): void {
      for (const resolve of this.waiting.splice(0)) resolve()
    }
  }

  const SUM: UsageSum = { model: 'a', records: 1, unpricedRecords: 0, units: {}, cost: '0' }
  const TOO_MANY = { param: 'group_by', code: 'too_many_groups' }

  const reportsOn = (
    usage: MemoryUsage,
    settings: object = {},
    flush = (): Promise<void> => Promise.resolve(),
  ): StoredUsageReports => {
    const config = new ConfigStore(parseConfig(JSON.stringify({ auth: { keys: [] }, ...settings }), {}))
    return new StoredUsageReports(usage, { flush } as UsageQueue, config)
  }

  function reportsOf(
    settings?: object,
    flush?: () => Promise<void>,
  ): { readonly reports: StoredUsageReports; readonly usage: HeldUsage } {
    const usage = new HeldUsage()
    return { usage, reports: reportsOn(usage, settings, flush) }
  }

  const begun = (usage: HeldUsage, count: number): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => {
        if (usage.asked === count) resolve()
        else setImmediate(look)
      }
      look()
    })

  it('are made for one caller at a time, who is told when to come again', async () => {
    const { reports, usage } = reportsOf()
    const first = reports.sums(by('team-a'))
    await expect(reports.sums(by('team-a'))).rejects.toMatchObject(BUSY)
    await expect(reports.list(PAGE)).rejects.toMatchObject(BUSY)
    const second = reports.sums(by('team-b'))
    await begun(usage, 2)
    usage.letGo()
    await Promise.all([first, second])
    await expect(reports.list(PAGE)).resolves.toEqual([])
  })

  it('are made for two callers at once, and for no third', async () => {
    const { reports, usage } = reportsOf()
    const underWay = [reports.sums(by('team-a')), reports.sums(by('team-b'))]
    await expect(reports.sums(by('team-c'))).rejects.toMatchObject(BUSY)
    await begun(usage, 2)
    usage.letGo()
    await Promise.all(underWay)
  })

  it('are made for one caller at once where there are few connections to share', async () => {
    const { reports, usage } = reportsOf(FEW_CONNECTIONS)
    const one = reports.sums(by('team-a'))
    await expect(reports.sums(by('team-b'))).rejects.toMatchObject(BUSY)
    await begun(usage, 1)
    usage.letGo()
    await one
  })

  it.each([
    [2, {}],
    [1, FEW_CONNECTIONS],
  ])('have a place for operators, although callers have all of their %i: %j', async (places, settings) => {
    const { reports, usage } = reportsOf(settings)
    const callers = Promise.allSettled(['team-a', 'team-b', 'team-c'].map((owner) => reports.sums(by(owner))))
    const sums = reports.sums(QUERY)
    await begun(usage, places + 1)
    await expect(reports.sums(QUERY)).rejects.toMatchObject(BUSY)
    usage.letGo()
    await expect(sums).resolves.toEqual([])
    expect((await callers).filter(({ status }) => status === 'fulfilled')).toHaveLength(places)
  })

  it('are made for operators in the places of callers as well, while these are free', async () => {
    const { reports, usage } = reportsOf()
    const underWay = [reports.sums(QUERY), reports.sums(QUERY), reports.sums(QUERY)]
    await expect(reports.sums(QUERY)).rejects.toMatchObject(BUSY)
    await expect(reports.sums(by('team-a'))).rejects.toMatchObject(BUSY)
    await begun(usage, 3)
    usage.letGo()
    await Promise.all(underWay)
  })

  it('leave their place when they fail', async () => {
    const { reports } = reportsOf({}, () => Promise.reject(new Error('away')))
    for (let count = 0; count < 5; count++) await expect(reports.sums(QUERY)).rejects.toThrow('away')
  })

  it('take no place where usage is not stored', async () => {
    const { reports } = reportsOf({ usage: { store: false } })
    const all = await Promise.allSettled(Array.from({ length: 5 }, () => reports.sums(QUERY)))
    for (const outcome of all) expect(outcome).toMatchObject({ reason: { kind: 'not_found' } })
  })

  it.each([
    [10_000, 'are given'],
    [10_001, 'are refused'],
  ])('of %i groups %s', async (groups) => {
    const usage = new MemoryUsage()
    usage.sums = () => Promise.resolve(Array.from({ length: groups }, () => SUM))
    const asked = reportsOn(usage).sums({ ...QUERY, groupBy: ['model'] })
    if (groups === 10_000) expect(await asked).toHaveLength(groups)
    else await expect(asked).rejects.toMatchObject({ kind: 'invalid_request', details: TOO_MANY })
  })
})

const NOW = Date.parse('2026-03-04T05:06:07.000Z')

function refusal(act: () => unknown): GatewayError {
  try {
    act()
  } catch (error) {
    if (error instanceof GatewayError) return error
  }
  throw new Error('nothing was refused')
}

describe('The period of a report', () => {
  it.each<[Query, string, string]>([
    [{}, '2026-03-03T05:06:07.000Z', '2026-03-04T05:06:07.000Z'],
    [{ to: '2026-02-01' }, '2026-01-31T00:00:00.000Z', '2026-02-01T00:00:00.000Z'],
    [{ from: '2026-02-01', to: '2026-02-02T12:30' }, '2026-02-01T00:00:00.000Z', '2026-02-02T12:30:00.000Z'],
    [{ from: '1767225600', to: '1767225601' }, '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:01.000Z'],
    [
      { from: '2026-01-01T00:00:00+02:00', to: '2026-01-01T00:00:00.5Z' },
      '2025-12-31T22:00:00.000Z',
      '2026-01-01T00:00:00.500Z',
    ],
    [{ from: '2024-02-29', to: '2024-03-01' }, '2024-02-29T00:00:00.000Z', '2024-03-01T00:00:00.000Z'],
    [{ from: '0' }, '1970-01-01T00:00:00.000Z', '2026-03-04T05:06:07.000Z'],
  ])('%j', (query, from, to) => {
    expect(readPeriod(query, NOW, Infinity)).toEqual({ fromMs: Date.parse(from), toMs: Date.parse(to) })
  })

  it.each<[string, Query]>([
    ['from', { from: 'yesterday' }],
    ['from', { from: '' }],
    ['from', { from: '2026-13-01' }],
    ['from', { from: '2026-02-29' }],
    ['from', { from: '2026-02-30T12:00:00+02:00' }],
    ['to', { from: '2026-02-01', to: '2026-02-30' }],
    ['to', { from: '2026-04-01', to: '2026-04-31T00:00' }],
    ['from', { from: '2026-02-01 00:00:00' }],
    ['from', { from: '2026' }],
    ['from', { from: '1767225600000' }],
    ['from', { from: '-5' }],
    ['from', { from: '1.5' }],
    ['from', { from: ['1', '2'] }],
    ['to', { to: '999999999999' }],
    ['to', { to: '2026-01-01T25:00:00Z' }],
    ['from', { from: '2026-02-02', to: '2026-02-01' }],
    ['from', { from: '2026-02-02', to: '2026-02-02' }],
  ])('is refused by the name of %s in %j', (param, query) => {
    expect(refusal(() => readPeriod(query, NOW, Infinity))).toMatchObject({
      kind: 'invalid_request',
      details: { param },
    })
  })

  it('is at most as long as it may be, and a caller who asks for more is told by the name of from', () => {
    const day = 86_400_000
    expect(readPeriod({ from: '2026-01-01', to: '2026-01-03' }, NOW, 2 * day)).toMatchObject({
      toMs: Date.parse('2026-01-03'),
    })
    for (const query of [
      { from: '2026-01-01T00:00:00Z', to: '2026-01-03T00:00:00.001Z' },
      { from: '2026-01-01' },
      { from: '0' },
    ]) {
      const error = refusal(() => readPeriod(query, NOW, 2 * day))
      expect(error).toMatchObject({ kind: 'invalid_request', details: { param: 'from' } })
      expect(error.message).toBe("Invalid 'from': must be at most 2 days before to; ask for several periods.")
    }
  })
})

describe('The rest of a query', () => {
  it.each([
    [undefined, []],
    ['none', []],
    ['day', ['day']],
    ['model', ['model']],
    ['channel', ['channel']],
  ])('groups by %s', (word, groups) => {
    expect(readGroups(word === undefined ? {} : { group_by: word })).toEqual(groups)
  })

  it.each(['key', 'owner', 'constructor', '', 'day,model', ['day']])('groups by no %j', (word) => {
    expect(refusal(() => readGroups({ group_by: word }))).toMatchObject({ details: { param: 'group_by' } })
  })

  it('limits a page to 1 to 1000 records, 100 by default', () => {
    expect([{}, { limit: '1' }, { limit: '1000' }].map(readLimit)).toEqual([100, 1, 1000])
    for (const limit of ['0', '1001', '-1', '1e2', '1.0', '', ['1']])
      expect(refusal(() => readLimit({ limit }))).toMatchObject({ details: { param: 'limit' } })
  })

  it('takes a cursor back as it was given', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 9_000_000_000_000 }),
        fc.stringMatching(/^[\x20-\x7e]{1,200}$/),
        (atMs, id) => {
          expect(readCursor({ cursor: cursorOf({ atMs, id }) })).toEqual({ atMs, id })
        },
      ),
    )
    expect(readCursor({})).toBeUndefined()
  })

  it.each([
    '',
    'x',
    Buffer.from('1').toString('base64url'),
    Buffer.from('x y').toString('base64url'),
    Buffer.from('1 \0').toString('base64url'),
    ['a'],
  ])('refuses the cursor %j', (cursor) => {
    expect(refusal(() => readCursor({ cursor }))).toMatchObject({ details: { param: 'cursor' } })
  })

  it('refuses what no report would read', () => {
    expect(
      refusal(() => {
        assertKnown({ form: '1' }, ['from'])
      }),
    ).toMatchObject({ details: { param: 'form' } })
    expect(() => {
      assertKnown({ from: '1' }, ['from', 'to'])
    }).not.toThrow()
  })
})

const RETENTION_MS = 1000

class OpenDatabase extends Database {
  run = (): Promise<never> => Promise.reject(new Error('the repository is in memory'))
  transaction = this.run
  open = (): Promise<void> => Promise.resolve()
  whenOpen(listener: () => void): void {
    listener()
  }
}

/** Has so many old rows. */
class OldUsage extends MemoryUsage {
  readonly asked: { readonly beforeMs: number; readonly limit: number }[] = []

  constructor(
    public left: number,
    private readonly failure?: Error,
  ) {
    super()
  }

  override prune(beforeMs = 0, limit = 0): Promise<number> {
    this.asked.push({ beforeMs, limit })
    if (this.failure !== undefined) return Promise.reject(this.failure)
    const deleted = Math.min(this.left, limit)
    this.left -= deleted
    return Promise.resolve(deleted)
  }
}

function retentionOf(store: OldUsage) {
  const lines: string[] = []
  const { logger } = createLogging('info', { write: (line) => lines.push(line) })
  const config = new ConfigStore(parseConfig(JSON.stringify({ usage: { retentionMs: RETENTION_MS } }), {}))
  const retention = new UsageRetention(store, new OpenDatabase(), config, logger)
  return { retention, lines }
}

describe('Old usage', () => {
  it('is deleted in batches when the store opens, and the work ends with the process', async () => {
    const store = new OldUsage(3500)
    const { retention } = retentionOf(store)
    const beforeMs = Date.now() - RETENTION_MS
    retention.onModuleInit()
    await eventually(() => store.left === 0)
    await retention.beforeApplicationShutdown()
    expect(store.asked.map(({ limit }) => limit)).toEqual([1000, 1000, 1000, 1000])
    expect(store.asked[0]?.beforeMs).toBeGreaterThanOrEqual(beforeMs)
    expect(store.asked[0]?.beforeMs).toBeLessThanOrEqual(Date.now() - RETENTION_MS)
  })

  it('stays another hour when the store fails, which is said', async () => {
    const { retention, lines } = retentionOf(new OldUsage(1, new Error('broken')))
    retention.onModuleInit()
    await eventually(() => lines.length === 1)
    expect(lines[0]).toContain('could not be deleted')
    await retention.beforeApplicationShutdown()
  })
})
