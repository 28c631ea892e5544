import * as z from 'zod'
import {
  boolean,
  bothValid,
  bytes,
  count,
  decimal,
  durationMs,
  globs,
  identifier,
  integer,
  isNonEmpty,
  oneOf,
  settings,
  textAs,
  timeMs,
} from './value-types.js'

/** Settings of background work: tasks, their callbacks, documents, usage and its prices. */

const integerUpTo = (max: number) => integer({ min: 1, max })

export const tasks = settings({
  pollIntervalMs: durationMs
    .default(5000)
    .describe('Interval between polls in the first minute; three times as long afterwards'),
  maxAgeMs: timeMs.default(86_400_000).describe('A task that has not ended by then fails'),
  reconcileMs: timeMs
    .default(600_000)
    .describe('How long the gateway searches the upstream for a create whose response was lost'),
  retentionMs: timeMs.default(2_592_000_000).describe('Ended tasks are deleted afterwards, with their callbacks'),
  pollsPerChannel: integerUpTo(1000).default(16).describe('Concurrent polls of one channel'),
  pollsPerSecond: count
    .default(250)
    .describe('Polls started per second per process; with more tasks, each is polled less often'),
})

/** Standard Webhooks: `whsec_` and the base64 of 24 to 64 bytes. */
const webhookSecret = textAs('must be whsec_ followed by the base64 of 24 to 64 bytes', (text) => {
  const encoded = text.startsWith('whsec_') ? text.slice('whsec_'.length) : ''
  const secret = Buffer.from(encoded, 'base64')
  return secret.toString('base64') === encoded && secret.length >= 24 && secret.length <= 64 ? text : undefined
}).meta({ type: '`whsec_` and base64', secret: true })

export const callbacks = settings({
  secret: webhookSecret.exactOptional().describe('Signs callbacks; see [callbacks.md](callbacks.md)'),
  scheduleMs: z
    .array(integer({ min: 0, max: 2_147_483_647 }))
    .refine(isNonEmpty, 'must hold at least one delay')
    .meta({ type: 'list of delays from 0' })
    .default([0, 5000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000, 36_000_000])
    .describe('The delay before each attempt: as many attempts as entries'),
  timeoutMs: durationMs.default(15_000).describe('Time for one attempt'),
  perHost: integerUpTo(1000).default(2).describe('Concurrent deliveries to one host'),
})

export const documents = settings({
  defaultTimeoutMs: durationMs.default(30_000).describe('For a request without `timeout`'),
  maximumTimeoutMs: durationMs.default(120_000).describe('Upper limit of `timeout`'),
  parseMs: durationMs
    .default(15_000)
    .describe(
      "Processor time for parsing one document, and four times as long by the clock, within the caller's deadline; beyond it 504",
    ),
  pages: integerUpTo(100_000).default(500).describe('Pages of a PDF; more are refused with 413'),
  processes: integerUpTo(64).default(2).describe('Documents parsed at once, each in a process of its own'),
  queue: integer({ min: 0, max: 10_000 }).default(4).describe('Documents that wait for a process; beyond it 503'),
  memoryBytes: integer({ min: 134_217_728, max: 68_719_476_736 })
    .default(805_306_368)
    .describe('Memory of one such process; beyond it the process is killed, and the caller gets 422'),
  fetch: boolean
    .default(true)
    .describe('Whether documents are fetched from URLs, by the gateway or an upstream reader; in the sandbox `false`'),
  fetchesInFlight: integerUpTo(10_000)
    .default(32)
    .describe('Documents fetched at once, including those for upstream readers; beyond it 503'),
  cacheMs: integer({ min: 0, max: 2_147_483_647 })
    .meta({ type: 'milliseconds from 0' })
    .default(3_600_000)
    .describe('How long a result is served from the cache; `0` = never'),
  cacheBytes: bytes.default(67_108_864).describe('Size of the cache'),
}).refine(({ defaultTimeoutMs, maximumTimeoutMs }) => defaultTimeoutMs <= maximumTimeoutMs, {
  path: ['defaultTimeoutMs'],
  error: 'must not be greater than documents.maximumTimeoutMs',
  when: bothValid('defaultTimeoutMs', 'maximumTimeoutMs'),
})

export const usage = settings({
  store: boolean
    .exactOptional()
    .describe(
      'Whether records are stored. Absent = where `database.url` or `auth.adminKey` is set; elsewhere they wait in memory until something else opens the store',
    ),
  queueRows: count
    .default(50_000)
    .describe(
      'Records that may wait for the store in memory; beyond it the oldest wait in files ([usage.md](usage.md#how-it-is-stored))',
    ),
  batchRows: integerUpTo(5000).default(500).describe('Records written at once'),
  batchMs: integerUpTo(60_000)
    .default(1000)
    .describe('Maximum wait for a batch to fill; a `kill -9` loses no more than that'),
  retentionMs: timeMs.default(7_776_000_000).describe('Records are deleted afterwards'),
})

const price = (meaning: string) => decimal.exactOptional().describe(meaning)

/** What some models cost; the first row that fits counts. Decimal text, in any currency. */
const priceRow = settings({
  models: globs.describe('As callers name them; `documents` and `images` for what has no model'),
  channels: z
    .array(identifier)
    .refine(isNonEmpty, 'must name at least one channel; leave it out for all')
    .meta({ type: 'list of channel ids' })
    .exactOptional()
    .describe('Absent = on every channel'),
  kind: oneOf(['input_transcription'])
    .exactOptional()
    .describe('Applies to input transcription of realtime sessions only; other rows never do'),
  promptTokens: price('Per million'),
  cachedTokens: price('Per million; part of the prompt'),
  cachedAudioTokens: price('Per million; part of both the cached and the audio tokens'),
  cacheWriteTokens: price('Per million; part of the prompt'),
  cacheWriteHourTokens: price('Per million; cache writes with a TTL of one hour'),
  audioInputTokens: price('Per million; part of the prompt'),
  completionTokens: price('Per million'),
  audioOutputTokens: price('Per million; part of the completion'),
  reasoningTokens: price('Per million; part of the completion'),
  characters: price('Per million'),
  audioMinutes: price('Per minute'),
  audioSeconds: price('Per second; not beside `audioMinutes`'),
  videos: price('Each'),
  images: price('Each'),
  documents: price('Each'),
  pages: price('Each'),
  requests: price('Each; includes all other use without a price'),
}).refine(({ audioMinutes, audioSeconds }) => audioMinutes === undefined || audioSeconds === undefined, {
  path: ['audioSeconds'],
  error: 'must not stand beside audioMinutes: both price the same',
  when: bothValid('audioMinutes', 'audioSeconds'),
})

export const prices = z.array(priceRow).meta({ type: 'list' }).default([]).describe('What is paid for what')
