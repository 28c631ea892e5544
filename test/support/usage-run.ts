import { readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { startM1Simulator } from '@multi-model-gateway/sandbox/m1/m1.simulator.js'
import { type P1Simulator, startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import { startP2Simulator } from '@multi-model-gateway/sandbox/p2/p2.simulator.js'
import { startP3Simulator } from '@multi-model-gateway/sandbox/p3/p3.simulator.js'
import { startP4Simulator } from '@multi-model-gateway/sandbox/p4/p4.simulator.js'
import type { ServedLedger, ServedUnits } from '@multi-model-gateway/sandbox/server/served-usage.js'
import { startVidgenSimulator } from '@multi-model-gateway/sandbox/vidgen/vidgen.simulator.js'
import { parse } from 'yaml'
import type { UsageRecord } from '../../src/core/usage-record.js'
import { Database } from '../../src/storage/database.js'
import { UsageReports, UsageRepository, type UsageSum } from '../../src/usage/usage.repository.js'
import { startGateway, type TestGateway } from './gateway.js'
import { P2_UPSTREAM_KEY, UPSTREAM_KEY } from './provider-gateways.js'
import { dataDirectory as newDataDirectory } from './stores.js'

/** A row of the price table as it stands in the file. */
type PriceTableRow = Readonly<Record<string, unknown>> & {
  readonly models: readonly string[]
  readonly channels?: readonly string[]
}

/** Behind the point: enough for any price per million. */
const PLACES = 24
const ONE = 10n ** BigInt(PLACES)
const TWELFTH = 10n ** BigInt(PLACES - 12)

/** Exactly, in 10^-24. */
function parts(value: unknown): bigint {
  const [whole = '', behind = ''] = String(value).split('.')
  return BigInt(whole) * ONE + BigInt(behind.padEnd(PLACES, '0').slice(0, PLACES))
}

const fits = (pattern: string, model: string): boolean =>
  new RegExp(`^${pattern.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '.*')}$`).test(model)

/**
 * What a record must cost by the table, in 10^-24 of its currency, by whole numbers alone and from the rules as they are
 * documented: each part of a whole at its own price or, without one, at that of the whole.
 */
export function expectedCost({ model, channelId, kind, units }: UsageRecord, table: readonly PriceTableRow[]): bigint {
  const row = table.find(
    (each) =>
      each.models.some((pattern) => fits(pattern, model ?? '')) &&
      (each.channels?.includes(channelId ?? '') ?? true) &&
      (each['kind'] === 'input_transcription') === (kind === 'input_transcription'),
  )
  const perMillion = (quantity: number, ...names: readonly string[]): bigint => {
    const name = names.find((each) => row?.[each] !== undefined)
    if (quantity > 0 && name === undefined) throw new Error(`${String(model)} has no price of ${names.join()}`)
    return (BigInt(quantity) * parts(row?.[name ?? ''] ?? 0)) / 1_000_000n
  }
  const { promptTokens = 0, cachedTokens = 0, cacheWriteTokens = 0, audioInputTokens = 0 } = units
  const { completionTokens = 0, audioOutputTokens = 0, reasoningTokens = 0, characters = 0, videos = 0 } = units
  return (
    perMillion(promptTokens - cachedTokens - cacheWriteTokens - audioInputTokens, 'promptTokens') +
    perMillion(cachedTokens, 'cachedTokens', 'promptTokens') +
    perMillion(cacheWriteTokens, 'cacheWriteTokens', 'promptTokens') +
    perMillion(audioInputTokens, 'audioInputTokens', 'promptTokens') +
    perMillion(completionTokens - audioOutputTokens - reasoningTokens, 'completionTokens') +
    perMillion(audioOutputTokens, 'audioOutputTokens', 'completionTokens') +
    perMillion(reasoningTokens, 'reasoningTokens', 'completionTokens') +
    perMillion(characters, 'characters') +
    BigInt(videos) * parts(row?.['videos'] ?? 0) +
    timeCost(units.audioSeconds ?? 0, row)
  )
}

/** A price per minute is rounded at the twelfth digit; half to even. */
function timeCost(seconds: number, row: PriceTableRow | undefined): bigint {
  if (seconds === 0) return 0n
  const perSecond = row?.['audioSeconds']
  if (perSecond !== undefined) return (parts(seconds) * parts(perSecond)) / ONE
  const dividend = (parts(seconds) * parts(row?.['audioMinutes'] ?? 0)) / ONE
  const [quotient, rest] = [dividend / (60n * TWELFTH), dividend % (60n * TWELFTH)]
  const half = 30n * TWELFTH
  const isUp = rest > half || (rest === half && quotient % 2n === 1n)
  return (quotient + (isUp ? 1n : 0n)) * TWELFTH
}

/** The cost that stands in a record, in the same measure. */
export const recordedCost = ({ cost }: UsageRecord): bigint => parts(cost)

/** A call of the mixed run, and the records it must leave, as `accountOf` writes them. */
export interface RunCall {
  readonly leaves: readonly string[]
  readonly run: () => Promise<unknown>
}

/** Whose figures a record holds. */
type Figures = 'reported' | 'estimated' | 'both' | 'none'

function figuresOf({ reported, estimated }: UsageRecord): Figures {
  if (reported !== null) return estimated === null ? 'reported' : 'both'
  return estimated === null ? 'none' : 'estimated'
}

/** What a record says beside its units: `request /v1/messages ok reported`. */
export const accountOf = (record: UsageRecord): string =>
  `${record.kind} ${record.route} ${record.outcome} ${figuresOf(record)}`

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
