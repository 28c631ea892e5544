import type { Units } from './request-context.js'

/**
 * What was used, under one name for each unit, whatever the upstream calls it; absent = the upstream has no such unit.
 * Parts of a whole are contained in it: `cachedTokens`, `cacheWriteTokens` and `audioInputTokens` in `promptTokens`,
 * `audioOutputTokens` and `reasoningTokens` in `completionTokens`; a cached audio token is in `cachedTokens` as well as
 * in `audioInputTokens`.
 */
export interface CountedUnits {
  readonly promptTokens?: number
  readonly cachedTokens?: number
  readonly cachedAudioTokens?: number
  /** Written to the upstream's cache, which costs more than reading there and than not caching. */
  readonly cacheWriteTokens?: number
  /** Those of them that are kept for an hour and cost more again. */
  readonly cacheWriteHourTokens?: number
  readonly audioInputTokens?: number
  readonly completionTokens?: number
  readonly audioOutputTokens?: number
  readonly reasoningTokens?: number
  readonly characters?: number
  readonly audioSeconds?: number
  readonly videos?: number
  readonly images?: number
  readonly documents?: number
  readonly pages?: number
}

type Counts = { -readonly [Name in keyof CountedUnits]: CountedUnits[Name] }

/**
 * Reads the usage objects of every dialect. Whatever it does not know it leaves out, and so it does with figures that
 * are no counts (negative, infinite). The sums of a realtime session hold its input transcriptions, by whatever model.
 * Cheap enough for the end of every call.
 */
export function countedUnits(units: Units): CountedUnits {
  const counts: Counts = {}
  countTokens(units, counts)
  put(counts, 'characters', count(units['input_characters']) ?? count(units['usage_characters']))
  put(counts, 'audioSeconds', count(units['seconds']) ?? count(units['audio_seconds']))
  put(counts, 'videos', count(units['videos']))
  put(counts, 'images', count(units['images']))
  put(counts, 'documents', count(units['documents']))
  put(counts, 'pages', count(units['pages']))
  const heard = group(units['input_transcription'])
  return heard === undefined ? counts : sumOfCounts(counts, countedUnits(heard))
}

/** Both together; a unit that neither has stays absent. */
export function sumOfCounts(one: CountedUnits, other: CountedUnits): CountedUnits {
  const sum: Counts = { ...one }
  for (const name of Object.keys(other) as (keyof CountedUnits)[]) sum[name] = (sum[name] ?? 0) + (other[name] ?? 0)
  return sum
}

function countTokens(units: Units, counts: Counts): void {
  // Token figures beside characters are derived from these: the estimates of a speech event, which nobody bills.
  if (units['input_characters'] !== undefined) return
  const input = count(units['prompt_tokens']) ?? count(units['input_tokens'])
  const written = count(units['cache_creation_input_tokens'])
  const read = count(units['cache_read_input_tokens'])
  // Messages count what is cached beside the input, everybody else counts it within.
  if (input !== undefined || written !== undefined || read !== undefined) {
    counts.promptTokens = (input ?? 0) + (written ?? 0) + (read ?? 0)
  }
  put(counts, 'completionTokens', count(units['completion_tokens']) ?? count(units['output_tokens']))
  put(counts, 'cachedTokens', read)
  put(counts, 'cacheWriteTokens', written)
  countInputDetails(units, counts)
  countOutputDetails(units, counts)
}

function countInputDetails(units: Units, counts: Counts): void {
  put(counts, 'cacheWriteHourTokens', count(group(units['cache_creation'])?.['ephemeral_1h_input_tokens']))
  const details = group(units['prompt_tokens_details'] ?? units['input_token_details'] ?? units['input_tokens_details'])
  if (details === undefined) return
  put(counts, 'cachedTokens', count(details['cached_tokens']))
  put(counts, 'cacheWriteTokens', count(details['cache_write_tokens']))
  put(counts, 'audioInputTokens', count(details['audio_tokens']))
  put(counts, 'cachedAudioTokens', count(group(details['cached_tokens_details'])?.['audio_tokens']))
}

function countOutputDetails(units: Units, counts: Counts): void {
  const details = group(
    units['completion_tokens_details'] ?? units['output_token_details'] ?? units['output_tokens_details'],
  )
  if (details === undefined) return
  put(counts, 'audioOutputTokens', count(details['audio_tokens']))
  put(counts, 'reasoningTokens', count(details['reasoning_tokens']) ?? count(details['thinking_tokens']))
}

const count = (value: number | Units | undefined): number | undefined =>
  typeof value === 'number' && value >= 0 && value < Infinity ? value : undefined

const group = (value: number | Units | undefined): Units | undefined => (typeof value === 'object' ? value : undefined)

function put(counts: Counts, name: keyof CountedUnits, value: number | undefined): void {
  if (value !== undefined) counts[name] = value
}
