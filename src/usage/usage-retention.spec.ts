import { describe, expect, it } from '@jest/globals'
import { eventually } from '../../test/support/eventually.js'
import { MemoryUsage } from '../../test/support/memory-usage.js'
import { ConfigStore } from '../config/config-store.js'
import { parseConfig } from '../config/load-config.js'
import { createLogging } from '../observability/logger.js'
import { Database } from '../storage/database.js'
import { UsageRetention } from './usage-retention.js'

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
