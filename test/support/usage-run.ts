import { readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { startM1Simulator } from '@multi-model-gateway/sandbox/m1/m1.simulator.js'
import { type P1Simulator, startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import { startP2Simulator } from '@multi-model-gateway/sandbox/p2/p2.simulator.js'
import { startP3Simulator } from '@multi-model-gateway/sandbox/p3/p3.simulator.js'
import { startP4Simulator } from '@multi-model-gateway/sandbox/p4/p4.simulator.js'
import type { ServedLedger, ServedUnits } from '@multi-model-gateway/sandbox/server/served-ledger.js'
import { startVidgenSimulator } from '@multi-model-gateway/sandbox/vidgen/vidgen.simulator.js'
import { parse } from 'yaml'
import type { UsageRecord } from '../../src/core/usage-record.js'
import { Database } from '../../src/storage/database.js'
import { UsageReports, type UsageSum } from '../../src/usage/usage-usage-reports.js'
import { UsageRepository } from '../../src/usage/usage.repository.js'
import type { PriceTableRow } from './expected-costs.js'
import { startGateway, type TestGateway } from './gateway.js'
import { UPSTREAM_KEY } from './p1-gateway.js'
import { P2_UPSTREAM_KEY } from './p2-gateway.js'
import { dataDirectory as newDataDirectory } from './stores.js'

/** What P4 serves in the run: P1 has the other model of its class. */
export const P4_RUN_MODEL = 'whisper-large-v3'

/** As the example configuration names it. */
export const P2_RUN_MODEL = 'p2-tts'

/** As the specification has it and estimates go by: what is estimated can then be held against what was served. */
const AUDIO_TOKENS_PER_MINUTE = 1000

/** A simulated upstream, as far as the run needs it. */
interface Upstream {
  readonly served: ServedLedger
  idle(): Promise<void>
  close(): Promise<void>
}

/** A gateway with a store, the price table of the example configuration, and a simulator of every upstream behind it. */
export interface UsageRun {
  readonly gateway: TestGateway
  readonly p1: P1Simulator
  /** Resolves when nothing is under way any more. */
  readonly idle: () => Promise<void>
  /** What the simulators say they served, by channel and model. */
  readonly served: () => Readonly<Record<string, Readonly<Record<string, ServedUnits>>>>
  /** The same, answer by answer, as `answersOf` has it. */
  readonly answers: () => readonly string[]
  readonly sums: () => Promise<readonly UsageSum[]>
  readonly records: () => Promise<readonly UsageRecord[]>
  readonly prices: readonly PriceTableRow[]
  readonly close: () => Promise<void>
}

export async function startUsageRun(): Promise<UsageRun> {
  const p1 = await startP1Simulator({ apiKey: UPSTREAM_KEY, audioTokensPerMinute: AUDIO_TOKENS_PER_MINUTE })
  const p2 = await startP2Simulator({ apiKey: P2_UPSTREAM_KEY, gapMs: 60_000 })
  const p3 = await startP3Simulator({ apiKey: UPSTREAM_KEY })
  const p4 = await startP4Simulator({ apiKey: UPSTREAM_KEY })
  const m1 = await startM1Simulator({ apiKey: UPSTREAM_KEY })
  const vidgen = await startVidgenSimulator(undefined, { taskMs: { submitted: 5, processing: 5 } })
  const upstreams: Readonly<Record<string, Upstream>> = { p1, p2, p3, p4, m1, vidgen }
  const channel = (provider: string, baseUrl: string, more: object = {}): object => ({
    id: `${provider}-main`,
    provider,
    baseUrl,
    credentials: UPSTREAM_KEY,
    ...more,
  })
  const dataDirectory = await newDataDirectory()
  const gateway = await startGateway({
    channels: [
      channel('p1', p1.url),
      channel('p2', p2.url, { credentials: P2_UPSTREAM_KEY, models: [P2_RUN_MODEL] }),
      channel('p3', p3.url),
      channel('p4', `${p4.url}/openai`, { models: [P4_RUN_MODEL] }),
      channel('m1', m1.url),
      channel('vidgen', vidgen.url),
    ],
    dataDirectory,
    sections: { usage: { store: true }, tasks: { pollIntervalMs: 20 }, prices: examplePrices() },
  })
  await gateway.application.get(Database).open()
  return {
    gateway,
    p1,
    idle: async () => {
      await Promise.all([...Object.values(upstreams), p1.realtime].map((upstream) => upstream.idle()))
    },
    served: () =>
      Object.fromEntries(Object.entries(upstreams).map(([name, { served }]) => [`${name}-main`, served.sums])),
    answers: () =>
      Object.entries(upstreams)
        .flatMap(([name, { served }]) =>
          Object.entries(served.answers).flatMap(([model, list]) =>
            list.map((units) => answerText(`${name}-main`, model, units)),
          ),
        )
        .sort(),
    records: () =>
      gateway.application
        .get(UsageRepository, { strict: false })
        .list({ ownerId: 'test', fromMs: 0, toMs: Date.now() + 60_000, limit: 10_000 }),
    prices: examplePrices(),
    sums: () =>
      gateway.application
        .get(UsageReports)
        .sums({ fromMs: 0, toMs: Date.now() + 60_000, groupBy: ['channel', 'model'] }),
    close: async () => {
      await gateway.close()
      for (const upstream of Object.values(upstreams)) await upstream.close()
      await rm(dataDirectory, { recursive: true })
    },
  }
}

/** Each answer by itself, as text, in an order that does not depend on who was faster. */
export const answersOf = (records: readonly UsageRecord[]): readonly string[] =>
  records.map(({ channelId, model, units }) => answerText(channelId ?? '', model ?? '', { ...units })).sort()

function answerText(channel: string, model: string, units: Readonly<Record<string, number>>): string {
  const used = Object.entries(units).filter(([, quantity]) => quantity > 0)
  const sorted = used.sort(([one], [other]) => one.localeCompare(other))
  return `${channel} ${model} ${JSON.stringify(Object.fromEntries(sorted))}`
}

const examplePrices = (): readonly PriceTableRow[] => {
  const example = readFileSync(new URL('../../gateway.example.yaml', import.meta.url), 'utf8')
  return (parse(example) as { prices: readonly PriceTableRow[] }).prices
}
