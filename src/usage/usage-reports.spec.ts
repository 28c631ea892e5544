import { describe, expect, it } from '@jest/globals'
import { MemoryUsage } from '../../test/support/memory-usage.js'
import { ConfigStore } from '../config/config-store.js'
import { parseConfig } from '../config/load-config.js'
import type { UsageLedger } from './usage-queue.js'
import { StoredUsageReports } from './usage-reports.js'
import type { UsageQuestion, UsageSum } from './usage-usage-reports.js'

const QUESTION = { fromMs: 0, toMs: 1, groupBy: [] } as const
const by = (ownerId: string): UsageQuestion => ({ ...QUESTION, ownerId })
const FEW_CONNECTIONS = { database: { maxConnections: 4 } }
const PAGE = { fromMs: 0, toMs: 1, ownerId: 'team-a', limit: 1 }
const BUSY = { kind: 'overloaded', details: { retryAfterSeconds: 1 } }

/** A store whose sums come when they are let go. */
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
  return new StoredUsageReports(usage, { flush } as UsageLedger, config)
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

describe('Reports', () => {
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
    const sums = reports.sums(QUESTION)
    await begun(usage, places + 1)
    await expect(reports.sums(QUESTION)).rejects.toMatchObject(BUSY)
    usage.letGo()
    await expect(sums).resolves.toEqual([])
    expect((await callers).filter(({ status }) => status === 'fulfilled')).toHaveLength(places)
  })

  it('are made for operators in the places of callers as well, while these are free', async () => {
    const { reports, usage } = reportsOf()
    const underWay = [reports.sums(QUESTION), reports.sums(QUESTION), reports.sums(QUESTION)]
    await expect(reports.sums(QUESTION)).rejects.toMatchObject(BUSY)
    await expect(reports.sums(by('team-a'))).rejects.toMatchObject(BUSY)
    await begun(usage, 3)
    usage.letGo()
    await Promise.all(underWay)
  })

  it('leave their place when they fail', async () => {
    const { reports } = reportsOf({}, () => Promise.reject(new Error('away')))
    for (let count = 0; count < 5; count++) await expect(reports.sums(QUESTION)).rejects.toThrow('away')
  })

  it('take no place where usage is not stored', async () => {
    const { reports } = reportsOf({ usage: { store: false } })
    const all = await Promise.allSettled(Array.from({ length: 5 }, () => reports.sums(QUESTION)))
    for (const outcome of all) expect(outcome).toMatchObject({ reason: { kind: 'not_found' } })
  })

  it.each([
    [10_000, 'are given'],
    [10_001, 'are refused'],
  ])('of %i groups %s', async (groups) => {
    const usage = new MemoryUsage()
    usage.sums = () => Promise.resolve(Array.from({ length: groups }, () => SUM))
    const asked = reportsOn(usage).sums({ ...QUESTION, groupBy: ['model'] })
    if (groups === 10_000) expect(await asked).toHaveLength(groups)
    else await expect(asked).rejects.toMatchObject({ kind: 'invalid_request', details: TOO_MANY })
  })
})
