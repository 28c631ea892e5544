import { globs } from './channel-schema.js'
import { listOf, mapOf } from './checks.js'
import { decimal } from './decimal-schema.js'
import { boolean, integer, oneOf } from './scalar-schemas.js'
import { optional, required, type Schema, withDefault } from './schema-schema.js'
import type { PriceRow, UsageSection } from './settings.js'
import { identifier } from './value-types.js'

export const usageSection = mapOf<UsageSection>({
  store: optional(boolean),
  queueRows: withDefault(integer({ min: 1, max: 1_000_000 }), 50_000),
  batchRows: withDefault(integer({ min: 1, max: 5000 }), 500),
  batchMs: withDefault(integer({ min: 1, max: 60_000 }), 1000),
  retentionMs: withDefault(integer({ min: 1 }), 7_776_000_000),
})

const price = optional(decimal)

const priceRow = mapOf<PriceRow>(
  {
    models: required(globs),
    channels: optional(listOf(identifier, { nonEmpty: 'must name at least one channel; leave it out for all' })),
    kind: optional(oneOf(['input_transcription'])),
    promptTokens: price,
    cachedTokens: price,
    cachedAudioTokens: price,
    cacheWriteTokens: price,
    cacheWriteHourTokens: price,
    audioInputTokens: price,
    completionTokens: price,
    audioOutputTokens: price,
    reasoningTokens: price,
    characters: price,
    audioMinutes: price,
    audioSeconds: price,
    videos: price,
    images: price,
    documents: price,
    pages: price,
    requests: price,
  },
  ({ audioMinutes, audioSeconds }, at) => {
    if (audioMinutes !== undefined && audioSeconds !== undefined)
      at.field('audioSeconds').fault('must not stand beside audioMinutes: both price the same')
  },
)

export const prices: Schema<readonly PriceRow[]> = listOf(priceRow)
