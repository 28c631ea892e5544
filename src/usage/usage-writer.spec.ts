import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { eventually } from '../../test/support/eventually.js'
import { away, MemoryUsage } from '../../test/support/memory-usage.js'
import { usageRecord } from '../../test/support/usage-records.js'
import { Database } from '../common/database/database.js'
import { createLogging } from '../common/observability/logger.js'
import { Metrics } from '../common/observability/metrics.js'
import { parseConfig } from '../config/config-loader.js'
import { ConfigStore } from '../config/config-store.js'
import { UsageMetrics } from './usage-metrics.js'
import type { UsageRecord } from './usage-record.js'
import { UsageWriter } from './usage-writer.js'

const refused = (): Promise<never> => Promise.reject(new Error('the repository is in memory'))

/** Opens when it is told to. */
class LateDatabase extends Database {
  run = refused
  transaction = refused
  private listeners: (() => void)[] = []

  open(): Promise<void> {
    for (const listener of this.listeners.splice(0)) listener()
    return Promise.resolve()
  }

  whenOpen(listener: () => void): void {
    this.listeners.push(listener)
  }
}

let store: MemoryUsage
let database: LateDatabase
let metrics: Metrics
let lines: Record<string, unknown>[]
let writer: UsageWriter

function begin(usage: object = {}): void {
  store = new MemoryUsage()
  database = new LateDatabase()
  store.whenOpened = () => void database.open()
  metrics = new Metrics()
  lines = []
  const { logger } = createLogging('info', {
    write: (line) => lines.push(JSON.parse(line) as Record<string, unknown>),
  })
  const config = parseConfig(JSON.stringify({ usage: { store: true, ...usage } }), {})
  writer = new UsageWriter(store, database, new ConfigStore(config), new UsageMetrics(metrics), logger, 100)
  writer.onModuleInit()
}

const records = (count: number): UsageRecord[] => Array.from({ length: count }, () => usageRecord())
const idsOf = (list: readonly UsageRecord[]): string[] => list.map(({ id }) => id)
const written = (): string[] => [...store.rows.keys()]
const logged = (): string[] =>
  lines.filter(({ msg }) => msg === 'usage').map(({ record }) => (record as UsageRecord).id)

async function metric(name: string): Promise<number> {
  const text = await metrics.registry.metrics()
  return Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\d+)$`, 'm').exec(text)?.[1] ?? 0)
}

beforeEach(() => {
  begin()
})
afterEach(() => writer.stop())

describe('What was used', () => {
  it('is written when a batch is full, or when somebody says that it is time', async () => {
    begin({ batchRows: 10 })
    const some = records(9)
    writer.add(some)
    expect(store.batches).toEqual([])
    writer.begin()
    await eventually(() => written().length === 9)
    const many = records(25)
    writer.add(many)
    await eventually(() => written().length === 34)
    expect(store.batches.map((batch) => batch.length)).toEqual([9, 10, 10, 5])
    expect(written()).toEqual(idsOf([...some, ...many]))
    expect(await metric('gateway_usage_queue_rows')).toBe(0)
  })

  it('waits for a store that is away, and is there once although an answer was lost', async () => {
    const some = records(3)
    let failures = 0
    store.before = () => (failures++ < 1 ? away() : undefined)
    store.after = () => (failures < 3 ? away() : undefined)
    writer.add(some)
    writer.begin()
    await eventually(() => store.batches.length > 0)
    expect(await metric('gateway_usage_queue_rows')).toBe(3)
    const later = records(2)
    writer.add(later)
    await eventually(() => written().length === 5)
    expect(written()).toEqual(idsOf([...some, ...later]))
    expect(store.batches.filter((batch) => batch[0]?.id === some[0]?.id)).toHaveLength(3)
    expect(logged()).toEqual([])
  })

  it('goes to the log, the oldest first, when too much waits', async () => {
    begin({ queueRows: 5, batchRows: 2 })
    store.before = away
    const first = records(2)
    writer.add(first)
    await eventually(() => store.batches.length === 1)
    const many = records(8)
    for (const record of many) writer.add([record])
    expect(logged()).toEqual(idsOf(many.slice(0, 3)))
    expect(await metric('gateway_usage_dropped_total')).toBe(3)
    expect(await metric('gateway_usage_queue_rows')).toBe(7)
    store.before = () => undefined
    await eventually(() => written().length === 7)
    expect(written()).toEqual(idsOf([...first, ...many.slice(3)]))
  })

  it('is not kept back by a row that the store does not take', async () => {
    const many = records(20)
    const bad = many[7]?.id
    store.before = (batch) => (idsOf(batch).includes(bad ?? '') ? new Error('invalid input syntax') : undefined)
    writer.add(many)
    writer.begin()
    await eventually(() => written().length === 19)
    expect(written()).not.toContain(bad)
    await eventually(() => logged().length === 1)
    expect(logged()).toEqual([bad])
    expect(await metric('gateway_usage_dropped_total')).toBe(1)
    // Halving finds it: far from twenty attempts.
    expect(store.batches.length).toBeLessThan(12)
  })

  it('is all written before the end, and what comes after it, too', async () => {
    begin({ batchRows: 4 })
    const many = records(11)
    writer.add(many)
    await writer.stop()
    expect(written()).toEqual(idsOf(many))
    const late = records(1)
    writer.add(late)
    writer.begin()
    await eventually(() => written().length === 12)
    expect(logged()).toEqual([])
  })

  it('is in the log when the store is away at the end', async () => {
    store.before = away
    const many = records(3)
    writer.add(many)
    writer.begin()
    await eventually(() => store.batches.length > 0)
    await writer.stop()
    expect(logged()).toEqual(idsOf(many))
    expect(written()).toEqual([])
  })

  it('is not waited for by an end that has waited for a silent store', async () => {
    let answer = (): void => undefined
    store.before = () =>
      new Promise<void>((resolve) => {
        answer = resolve
      })
    const many = records(3)
    writer.add(many)
    writer.begin()
    await eventually(() => store.batches.length > 0)
    await writer.stop()
    expect(logged()).toEqual(idsOf(many))
    answer()
  })
})

describe('Where nobody asked for a store', () => {
  beforeEach(() => {
    begin({ store: undefined, batchRows: 2, queueRows: 5 })
  })

  it('what was used waits until something else opens it', async () => {
    const some = records(4)
    writer.add(some)
    writer.begin()
    expect([store.opened, store.batches]).toEqual([0, []])
    await database.open()
    await eventually(() => written().length === 4)
    expect(written()).toEqual(idsOf(some))
  })

  it('whoever asks for reports opens it, and finds what was used before', async () => {
    const some = records(4)
    writer.add(some)
    await writer.flush()
    expect(store.opened).toBe(1)
    expect(written()).toEqual(idsOf(some))
  })

  it('only the newest is kept, which is counted and said once', async () => {
    const many = records(12)
    for (const record of many) writer.add([record])
    expect(lines.map(({ msg }) => msg)).toEqual(['usage is not stored here: the oldest records are forgotten'])
    expect(await metric('gateway_usage_dropped_total')).toBe(7)
    await writer.flush()
    expect(written()).toEqual(idsOf(many.slice(7)))
  })

  it('nothing is opened at the end', async () => {
    writer.add(records(4))
    await writer.stop()
    expect([store.opened, store.batches, logged()]).toEqual([0, [], []])
  })
})

describe('Where usage is not to be stored', () => {
  it('nothing is written, whoever opened the store', async () => {
    begin({ store: false, batchRows: 1 })
    writer.add(records(3))
    await database.open()
    await writer.stop()
    expect(store.batches).toEqual([])
    expect(await metric('gateway_usage_queue_rows')).toBe(0)
  })
})
