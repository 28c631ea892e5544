import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { ConfigStore } from '../../src/config/config-store.js'
import { parseConfig } from '../../src/config/load-config.js'
import type { GatewayConfig } from '../../src/config/settings.js'
import { Call } from '../../src/core/request-context.js'
import type { UsageRecord } from '../../src/core/usage-record.js'
import type { EndedTask } from '../../src/core/usage-recorder.js'
import { createLogging } from '../../src/observability/logger.js'
import { Metrics } from '../../src/observability/metrics.js'
import { CallEndings, type CallOutcome } from '../../src/observability/request-hooks.js'
import { Database } from '../../src/storage/database.js'
import { UsageRecovery } from '../../src/usage/disk-buffer-recovery.js'
import { UsageOverflow } from '../../src/usage/disk-buffer-writer.js'
import { SpillFolder } from '../../src/usage/disk-buffer.js'
import { LostUsage } from '../../src/usage/lost-usage.js'
import { UsageLeftovers } from '../../src/usage/usage-leftovers.js'
import { UsageMetrics } from '../../src/usage/usage-metrics.js'
import { UsageLedger } from '../../src/usage/usage-queue.js'
import { UsageSettlement } from '../../src/usage/usage-settlement.js'
import { UsageWriter } from '../../src/usage/usage-writer.js'
import { MemoryUsage } from './memory-usage.js'
import { spilledIds, spillPlace } from './usage-writer-lab.js'

export const OK: CallOutcome = { status: 200, left: false, totalMs: 12, gatewayMs: 1 }

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
  taskClass: 'video',
  route: '/vidgen/v1/videos/text2video',
  model: 'vidgen-v1',
  channelId: 'v',
  hasSucceeded: true,
  reported: {},
  durationMs: 5,
  ...changes,
})

/** A chat call of team A that is over but for saying so. */
export function chatCall(model = 'gpt-4o', tokens = 10): Call {
  const call = new Call('req_1', 'POST', '/v1/chat/completions', 0)
  call.caller = { keyId: 'team-a' }
  Object.assign(call.log, { model, channelId: 'p1-main', modelClass: 'chat' })
  call.log.usage = { units: { prompt_tokens: tokens }, estimated: false }
  return call
}

export interface UsageLedgerOptions {
  readonly prices?: readonly object[]
  /** What the configuration file holds after a reload. */
  readonly laterPrices?: readonly object[]
  readonly channels?: readonly object[]
  /** The same. */
  readonly laterChannels?: readonly object[]
  readonly usage?: object
}

/** A ledger over a store in memory. */
export interface UsageLedgerLab {
  readonly store: MemoryUsage
  readonly endings: CallEndings
  readonly config: ConfigStore
  readonly ledger: UsageLedger
  readonly lines: readonly Readonly<Record<string, unknown>>[]
  readonly chat: (model?: string, tokens?: number) => void
  /** What is stored, once everything noted is. */
  readonly rows: () => Promise<UsageRecord[]>
  /** The lines of one metric. */
  readonly samples: (name: string) => Promise<string[]>
  readonly spilled: () => Promise<readonly string[]>
  close(): Promise<void>
}

export async function usageLedgerLab({
  prices = [],
  laterPrices = prices,
  channels = [],
  laterChannels = channels,
  usage = { batchMs: 60_000 },
}: UsageLedgerOptions = {}): Promise<UsageLedgerLab> {
  const place = await spillPlace()
  const configWith = (rows: readonly object[], list: readonly object[]): GatewayConfig =>
    parseConfig(JSON.stringify({ usage, channels: list, prices: rows }), {})
  const store = new MemoryUsage()
  const endings = new CallEndings()
  const metrics = new Metrics()
  const lines: Record<string, unknown>[] = []
  const { logger } = createLogging('info', {
    write: (line) => lines.push(JSON.parse(line) as Record<string, unknown>),
  })
  const config = new ConfigStore(configWith(prices, channels), () =>
    Promise.resolve({ config: configWith(laterPrices, laterChannels), file: '' }),
  )
  const counts = new UsageMetrics(metrics)
  const folder = new SpillFolder(join(place, 'rows'))
  const leftovers = new UsageLeftovers(folder, counts, logger)
  const database = new OpenDatabase()
  const lost = new LostUsage(counts, logger)
  const recovery = new UsageRecovery(store, database, config, folder, lost, logger)
  const overflow = new UsageOverflow(folder, recovery, config, lost, logger)
  const writer = new UsageWriter(store, database, config, counts, leftovers, overflow, lost, logger, 100)
  const ledger = new UsageLedger(endings, config, new UsageSettlement(counts, logger), writer, counts, logger)
  writer.onModuleInit()
  ledger.onModuleInit()
  return {
    store,
    endings,
    config,
    ledger,
    lines,
    chat: (model, tokens) => {
      endings.over(chatCall(model, tokens), OK)
    },
    rows: async () => {
      await ledger.flush()
      return [...store.rows.values()]
    },
    samples: async (name) => (await metrics.registry.metrics()).split('\n').filter((line) => line.startsWith(name)),
    spilled: () => spilledIds(folder.path),
    close: async () => {
      await ledger.beforeApplicationShutdown()
      ledger.onApplicationShutdown()
      await rm(place, { recursive: true })
    },
  }
}
