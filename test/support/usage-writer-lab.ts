import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ConfigStore } from '../../src/config/config-store.js'
import type { GatewayConfig } from '../../src/config/settings.js'
import { GatewayError } from '../../src/core/errors.js'
import { RequestContext } from '../../src/core/request-context.js'
import type { EndedTask, UsageRecord } from '../../src/core/usage-record.js'
import { createLogging, type Logger } from '../../src/observability/logger.js'
import { Metrics } from '../../src/observability/metrics.js'
import { RequestHooks, type RequestOutcome } from '../../src/observability/request-hooks.js'
import { Database } from '../../src/storage/database.js'
import { DiskBufferRecovery } from '../../src/usage/record-delivery.js'
import { ShutdownBuffer } from '../../src/usage/disk-buffer-shutdown.js'
import { DiskBufferWriter } from '../../src/usage/disk-buffer-writer.js'
import { DiskBuffer } from '../../src/usage/disk-buffer.js'
import { DroppedUsage, UsageMetrics } from '../../src/usage/usage-metrics.js'
import { UsageQueue, UsageSettlement } from '../../src/usage/usage-queue.js'
import { UsageWriter } from '../../src/usage/usage-writer.js'
import { UsageRepository, type UsageSum } from '../../src/usage/usage.repository.js'
import { parseConfig } from './config.js'
import { contextAt } from './endpoints.js'
import { usageRecord } from './task-rows.js'

export const away = (): GatewayError => new GatewayError('overloaded', 'The database cannot be reached.')

/** A store that accepts rows, or fails as configured. */
export class MemoryUsage extends UsageRepository {
  readonly rows = new Map<string, UsageRecord>()
  readonly batches: (readonly UsageRecord[])[] = []
  /** Asked before each batch is taken: what it returns is thrown. */
  before: (batch: readonly UsageRecord[]) => unknown = () => undefined
  /** The same once it has been taken: an answer that is lost. */
  after: (batch: readonly UsageRecord[]) => unknown = () => undefined
  opened = 0
  whenOpened: () => void = () => undefined

  override open(): Promise<void> {
    this.opened++
    this.whenOpened()
    return Promise.resolve()
  }

  override async insert(records: readonly UsageRecord[]): Promise<void> {
    this.batches.push(records)
    await failWith(this.before(records))
    for (const record of records) if (!this.rows.has(record.id)) this.rows.set(record.id, record)
    await failWith(this.after(records))
  }

  override sums(): Promise<readonly UsageSum[]> {
    return Promise.resolve([])
  }

  override list(): Promise<readonly UsageRecord[]> {
    return Promise.resolve([...this.rows.values()])
  }

  override prune(): Promise<number> {
    return Promise.resolve(0)
  }
}

/** A promise is waited for, an error is thrown. */
async function failWith(failure: unknown): Promise<void> {
  const error = await failure
  if (error instanceof Error) throw error
}

const refused = (): Promise<never> => Promise.reject(new Error('the repository is in memory'))

/** Opens on request. */
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

/** An empty folder for the disk buffer; the caller must remove it. */
export const diskBufferFolder = (): Promise<string> => mkdtemp(join(tmpdir(), 'gateway-disk-buffer-'))

/** The texts of the disk buffer's files in a folder. */
export async function diskBufferFiles(path: string): Promise<readonly string[]> {
  const names = await readdir(path).catch(() => [])
  // A file may be removed between the listing and its reading: then it is none.
  const texts = await Promise.all(names.sort().map((name) => readFile(join(path, name), 'utf8').catch(() => undefined)))
  return texts.filter((text) => text !== undefined)
}

/** The ids of the rows in them. */
export const bufferedIds = async (path: string): Promise<readonly string[]> =>
  (await diskBufferFiles(path)).flatMap((text) =>
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
  /** Of what lies in files; it looks for them once the module has started. */
  readonly recovery: DiskBufferRecovery
  /** Shared by all that may lose a record. */
  readonly lost: DroppedUsage
  readonly config: ConfigStore
  readonly folder: DiskBuffer
  readonly logger: Logger
  readonly lines: readonly Readonly<Record<string, unknown>>[]
  /** The ids the store has. */
  readonly written: () => string[]
  /** The ids in the log. */
  readonly logged: () => string[]
  readonly buffered: () => Promise<readonly string[]>
  readonly metric: (name: string) => Promise<number>
  reload(usage: object): Promise<void>
  close(): Promise<void>
}

/** `diskBufferBytes`: what its files may hold. `path`: where they lie, for a process beside another one, or after it. */
export async function usageWriterLab(
  usage: object = {},
  diskBufferBytes?: number,
  path?: string,
): Promise<UsageWriterLab> {
  const place = await diskBufferFolder()
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
  const folder = new DiskBuffer(path ?? join(place, 'rows'), diskBufferBytes)
  const shutdownBuffer = new ShutdownBuffer(folder, counts, logger)
  const lost = new DroppedUsage(counts, logger)
  const recovery = new DiskBufferRecovery(store, database, config, folder, lost, logger)
  const overflow = new DiskBufferWriter(folder, recovery, config, lost, logger)
  const writer = new UsageWriter(store, database, config, counts, shutdownBuffer, overflow, lost, logger, 100)
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
    buffered: () => bufferedIds(folder.path),
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

export const OK: RequestOutcome = { status: 200, left: false, totalMs: 12, gatewayMs: 1 }

class OpenDatabase extends Database {
  run = (): Promise<never> => Promise.reject(new Error('the repository is in memory'))
  transaction = this.run
  open = (): Promise<void> => Promise.resolve()
  whenOpen(listener: () => void): void {
    listener()
  }
}

/** A video task of team A that has succeeded. */
export const endedVideo = (changes: Partial<EndedTask> = {}): EndedTask => ({
  id: 'video 1',
  ownerId: 'team-a',
  usageClass: 'video',
  route: '/vidgen/v1/videos/text2video',
  model: 'vidgen-v1',
  channelId: 'v',
  outcome: 'ok',
  usage: { units: { videos: 1 }, estimated: false },
  durationMs: 5,
  ...changes,
})

/** A chat call of team A that is over but for saying so. */
export function chatCall(model = 'gpt-4o', tokens = 10): RequestContext {
  const call = contextAt('POST', '/v1/chat/completions')
  call.caller = { keyId: 'team-a' }
  Object.assign(call.log, { model, channelId: 'p1-main', modelClass: 'chat' })
  call.log.usage = { units: { prompt_tokens: tokens }, estimated: false }
  return call
}

export interface UsageQueueOptions {
  readonly prices?: readonly object[]
  /** What the configuration file holds after a reload. */
  readonly laterPrices?: readonly object[]
  readonly channels?: readonly object[]
  /** The same. */
  readonly laterChannels?: readonly object[]
  readonly usage?: object
}

/** A queue over a store in memory. */
export interface UsageQueueLab {
  readonly store: MemoryUsage
  readonly hooks: RequestHooks
  readonly config: ConfigStore
  readonly queue: UsageQueue
  readonly lines: readonly Readonly<Record<string, unknown>>[]
  readonly chat: (model?: string, tokens?: number) => void
  /** What is stored, once everything noted is. */
  readonly rows: () => Promise<UsageRecord[]>
  /** The lines of one metric. */
  readonly samples: (name: string) => Promise<string[]>
  readonly buffered: () => Promise<readonly string[]>
  close(): Promise<void>
}

export async function usageQueueLab({
  prices = [],
  laterPrices = prices,
  channels = [],
  laterChannels = channels,
  usage = { batchMs: 60_000 },
}: UsageQueueOptions = {}): Promise<UsageQueueLab> {
  const place = await diskBufferFolder()
  const configWith = (rows: readonly object[], list: readonly object[]): GatewayConfig =>
    parseConfig(JSON.stringify({ usage, channels: list, prices: rows }), {})
  const store = new MemoryUsage()
  const hooks = new RequestHooks()
  const metrics = new Metrics()
  const lines: Record<string, unknown>[] = []
  const { logger } = createLogging('info', {
    write: (line) => lines.push(JSON.parse(line) as Record<string, unknown>),
  })
  const config = new ConfigStore(configWith(prices, channels), () =>
    Promise.resolve({ config: configWith(laterPrices, laterChannels), file: '' }),
  )
  const counts = new UsageMetrics(metrics)
  const folder = new DiskBuffer(join(place, 'rows'))
  const shutdownBuffer = new ShutdownBuffer(folder, counts, logger)
  const database = new OpenDatabase()
  const lost = new DroppedUsage(counts, logger)
  const recovery = new DiskBufferRecovery(store, database, config, folder, lost, logger)
  const overflow = new DiskBufferWriter(folder, recovery, config, lost, logger)
  const writer = new UsageWriter(store, database, config, counts, shutdownBuffer, overflow, lost, logger, 100)
  const queue = new UsageQueue(hooks, config, new UsageSettlement(counts, logger), writer, counts, logger)
  writer.onModuleInit()
  queue.onModuleInit()
  return {
    store,
    hooks,
    config,
    queue,
    lines,
    chat: (model, tokens) => {
      hooks.over(chatCall(model, tokens), OK)
    },
    rows: async () => {
      await queue.flush()
      return [...store.rows.values()]
    },
    samples: async (name) => (await metrics.registry.metrics()).split('\n').filter((line) => line.startsWith(name)),
    buffered: () => bufferedIds(folder.path),
    close: async () => {
      await queue.beforeApplicationShutdown()
      queue.onApplicationShutdown()
      await rm(place, { recursive: true })
    },
  }
}
