import { beforeEach, describe, expect, it } from '@jest/globals'
import { eventually } from '../../test/support/eventually.js'
import { away, MemoryUsage } from '../../test/support/memory-usage.js'
import { idsOf, records } from '../../test/support/usage-writer-lab.js'
import type { UsageRecord } from '../core/usage-record.js'
import { createLogging } from '../observability/logger.js'
import { Metrics } from '../observability/metrics.js'
import { LostUsage } from './lost-usage.js'
import { RecordDelivery } from './usage-delivery.js'
import { UsageMetrics } from './usage-metrics.js'

const saying = (code: string): Error => Object.assign(new Error('said the server'), { code })

let store: MemoryUsage
let refused: string[]
let said: unknown[]
let delivery: RecordDelivery

beforeEach(() => {
  store = new MemoryUsage()
  refused = []
  said = []
  const { logger } = createLogging('info', {
    write: (line) => said.push((JSON.parse(line) as Record<string, unknown>)['msg']),
  })
  // A log of its own, so that `said` holds what the delivery says itself.
  const told = createLogging('info', {
    write: (line) => {
      const { reason, record } = JSON.parse(line) as { readonly reason: string; readonly record: UsageRecord }
      refused.push(reason === 'refused' ? record.id : `${record.id} is told as ${reason}`)
    },
  })
  delivery = new RecordDelivery(store, new LostUsage(new UsageMetrics(new Metrics()), told.logger), logger)
})

const written = (): string[] => [...store.rows.keys()]

describe('A batch', () => {
  it.each(['22001', '22P02', '23502', '23514'])(
    'is not kept back by a row that the store does not take: %s',
    async (code) => {
      const many = records(20)
      const bad = many[7]?.id ?? ''
      store.before = (batch) => (idsOf(batch).includes(bad) ? saying(code) : undefined)
      expect(await delivery.deliver(many)).toEqual([])
      expect(written()).toEqual(idsOf(many).filter((id) => id !== bad))
      expect(refused).toEqual([bad])
      // Halving finds it: far from twenty attempts.
      expect(store.batches.length).toBeLessThan(12)
      expect(said).toEqual(['a usage record was refused by the store'])
    },
  )

  it.each(['25006', '40P01', '40001', '42501', '42P01', '54000', 'XX000'])(
    'that the store does not take as it stands comes again, whole: %s',
    async (code) => {
      const many = records(20)
      let attempts = 0
      store.before = () => (attempts++ < 1 ? saying(code) : undefined)
      expect(await delivery.deliver(many)).toEqual([])
      expect(written()).toEqual(idsOf(many))
      expect(store.batches.map(({ length }) => length)).toEqual([20, 20])
      expect(refused).toEqual([])
      expect(said).toEqual(['usage waits: the store does not take it'])
    },
  )

  it('comes again whatever else went wrong, which is said once, and nothing is said of a store that is away', async () => {
    const failures = [new TypeError('no code'), saying('25006'), away()]
    store.before = () => failures.shift()
    expect(await delivery.deliver(records(2))).toEqual([])
    expect(said).toEqual(['usage waits: the store does not take it'])
  })

  it('comes back to whoever stops the delivery, as far as it was not delivered', async () => {
    const many = records(8)
    const [bad, waiting] = [many[1]?.id ?? '', many[6]?.id ?? '']
    store.before = (batch) => {
      if (idsOf(batch).includes(bad)) return saying('22P02')
      return idsOf(batch).includes(waiting) ? away() : undefined
    }
    const delivered = delivery.deliver(many)
    await eventually(() => written().length === 3)
    delivery.stop(performance.now())
    expect(idsOf(await delivered)).toEqual(idsOf(many.slice(4)))
    expect(refused).toEqual([bad])
  })
})
