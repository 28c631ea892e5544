import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ConfigStore } from '../../src/config/config-store.js'
import { parseConfig } from '../../src/config/load-config.js'
import type { UsageRecord } from '../../src/core/usage-record.js'
import { createLogging, type Logger } from '../../src/observability/logger.js'
import { Metrics } from '../../src/observability/metrics.js'
import { Database } from '../../src/storage/database.js'
import { UsageRecovery } from '../../src/usage/disk-buffer-recovery.js'
import { UsageOverflow } from '../../src/usage/disk-buffer-writer.js'
import { SpillFolder } from '../../src/usage/disk-buffer.js'
import { LostUsage } from '../../src/usage/lost-usage.js'
import { UsageLeftovers } from '../../src/usage/usage-leftovers.js'
import { UsageMetrics } from '../../src/usage/usage-metrics.js'
import { UsageWriter } from '../../src/usage/usage-writer.js'
import { MemoryUsage } from './memory-usage.js'
import { usageRecord } from './usage-records.js'

const refused = (): Promise<never> => Promise.reject(new Error('the repository is in memory'))

/** Opens when it is told to. */
export class LateDatabase extends Database {
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

/** An empty place for spill files; to be removed by whoever asked for it. */
export const spillPlace = (): Promise<string> => mkdtemp(join(tmpdir(), 'gateway-spill-'))

/** The texts of the spill files in a folder. */
export async function spillFiles(path: string): Promise<readonly string[]> {
  const names = await readdir(path).catch(() => [])
  return Promise.all(names.sort().map((name) => readFile(join(path, name), 'utf8')))
}

/** The ids of the rows in them. */
export const spilledIds = async (path: string): Promise<readonly string[]> =>
  (await spillFiles(path)).flatMap((text) =>
    text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => (JSON.parse(line) as UsageRecord).id),
  )

export const records = (count: number): UsageRecord[] => Array.from({ length: count }, () => usageRecord())
export const idsOf = (list: readonly UsageRecord[]): string[] => list.map(({ id }) => id)

/** A writer over a store in memory, with what it says and counts. */
export interface UsageWriterLab {
  readonly store: MemoryUsage
  readonly database: LateDatabase
  readonly writer: UsageWriter
  /** Of what lies in files; it looks for them once it is told that the module has begun. */
  readonly recovery: UsageRecovery
  /** Shared by all that may lose a record. */
  readonly lost: LostUsage
  readonly config: ConfigStore
  readonly folder: SpillFolder
  readonly logger: Logger
  readonly lines: readonly Readonly<Record<string, unknown>>[]
  /** The ids the store has. */
  readonly written: () => string[]
  /** The ids in the log. */
  readonly logged: () => string[]
  readonly spilled: () => Promise<readonly string[]>
  readonly metric: (name: string) => Promise<number>
  reload(usage: object): Promise<void>
  close(): Promise<void>
}

/** `spillBytes`: what its files may hold. `path`: where they lie, for a process beside another one, or after it. */
export async function usageWriterLab(usage: object = {}, spillBytes?: number, path?: string): Promise<UsageWriterLab> {
  const place = await spillPlace()
  const store = new MemoryUsage()
  const database = new LateDatabase()
  store.whenOpened = () => void database.open()
  const metrics = new Metrics()
  const lines: Record<string, unknown>[] = []
  const { logger } = createLogging('info', {
    write: (line) => lines.push(JSON.parse(line) as Record<string, unknown>),
  })
  let settings = usage
  const parsed = () => parseConfig(JSON.stringify({ usage: { store: true, ...settings } }), {})
  const config = new ConfigStore(parsed(), () => Promise.resolve({ config: parsed() }))
  const counts = new UsageMetrics(metrics)
  const folder = new SpillFolder(path ?? join(place, 'rows'), spillBytes)
  const leftovers = new UsageLeftovers(folder, counts, logger)
  const lost = new LostUsage(counts, logger)
  const recovery = new UsageRecovery(store, database, config, folder, lost, logger)
  const overflow = new UsageOverflow(folder, recovery, config, lost, logger)
  const writer = new UsageWriter(store, database, config, counts, leftovers, overflow, lost, logger, 100)
  writer.onModuleInit()
  return {
    store,
    database,
    writer,
    recovery,
    lost,
    config,
    folder,
    logger,
    lines,
    written: () => [...store.rows.keys()],
    logged: () => lines.filter(({ msg }) => msg === 'usage').map(({ record }) => (record as UsageRecord).id),
    spilled: () => spilledIds(folder.path),
    metric: async (name) => {
      const text = await metrics.registry.metrics()
      return Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\d+)$`, 'm').exec(text)?.[1] ?? 0)
    },
    reload: async (changed) => {
      settings = changed
      await config.reload()
    },
    close: async () => {
      await writer.stop()
      recovery.onModuleDestroy()
      await recovery.beforeApplicationShutdown()
      await rm(place, { recursive: true })
    },
  }
}
