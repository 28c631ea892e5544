import type { UsageClass, UsageKind } from './endpoint.js'
import { GatewayError } from './errors.js'
import type { RequestContext, Units, Usage } from './request-context.js'

/**
 * What was used, under one name for each unit, whatever the upstream calls it; absent = the upstream has no such unit. Parts of
 * a whole are contained in it: `cachedTokens`, `cacheWriteTokens` and `audioInputTokens` in `promptTokens`, `audioOutputTokens`
 * and `reasoningTokens` in `completionTokens`; a cached audio token is in `cachedTokens` as well as in `audioInputTokens`.
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
function sumOfCounts(one: CountedUnits, other: CountedUnits): CountedUnits {
  const sum: Counts = { ...one }
  for (const name of Object.keys(other) as (keyof CountedUnits)[]) sum[name] = (sum[name] ?? 0) + (other[name] ?? 0)
  return sum
}

function countTokens(units: Units, counts: Counts): void {
  // Token figures beside characters are derived from these: the estimates of a speech event, which are not billed.
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

/** Of figures that an upstream has reported; undefined where it tells none apart. */
export function reasoningTokensOf(units: Units): number | undefined {
  const counts: Counts = {}
  countOutputDetails(units, counts)
  return counts.reasoningTokens
}

const count = (value: number | Units | undefined): number | undefined =>
  typeof value === 'number' && value >= 0 && value < Infinity ? value : undefined

const group = (value: number | Units | undefined): Units | undefined => (typeof value === 'object' ? value : undefined)

function put(counts: Counts, name: keyof CountedUnits, value: number | undefined): void {
  if (value !== undefined) counts[name] = value
}

export type UnitName = keyof CountedUnits

/** Every unit, in the order callers see them, with its name in columns, answers and metrics. */
export const UNIT_NAMES = {
  promptTokens: 'prompt_tokens',
  cachedTokens: 'cached_tokens',
  cachedAudioTokens: 'cached_audio_tokens',
  cacheWriteTokens: 'cache_write_tokens',
  cacheWriteHourTokens: 'cache_write_hour_tokens',
  audioInputTokens: 'audio_input_tokens',
  completionTokens: 'completion_tokens',
  audioOutputTokens: 'audio_output_tokens',
  reasoningTokens: 'reasoning_tokens',
  characters: 'characters',
  audioSeconds: 'audio_seconds',
  videos: 'videos',
  images: 'images',
  documents: 'documents',
  pages: 'pages',
} as const satisfies Readonly<Record<UnitName, string>>

export const UNITS = Object.keys(UNIT_NAMES) as readonly UnitName[]

export type UnitColumn = (typeof UNIT_NAMES)[UnitName]

export const USAGE_OUTCOMES = ['ok', 'caller_left', 'upstream_failed', 'refused'] as const
export type UsageOutcome = (typeof USAGE_OUTCOMES)[number]

/** `free`: nothing was used. `unpriced`: something was, for which the table has no price, or it is not known what. */
export const PRICINGS = ['priced', 'unpriced', 'free'] as const
export type Pricing = (typeof PRICINGS)[number]

/** One record as it is stored. */
export interface UsageRecord {
  readonly id: string
  /** Unix milliseconds. */
  readonly atMs: number
  /** null for ended tasks. A caller may choose it, so it need not be unique. */
  readonly requestId: string | null
  readonly keyId: string
  /** `ownerOf(caller)`. */
  readonly ownerId: string
  readonly kind: UsageKind
  readonly route: string
  readonly model: string | null
  readonly channelId: string | null
  readonly outcome: UsageOutcome
  /** Of a request that was refused and has used nothing: the code of its error, otherwise its kind. */
  readonly reason?: string
  /** As many refusals of one caller, for one reason and within one minute, are one record; absent = 1. */
  readonly requests?: number
  /** JSON: `TranslationRecord` of a request that was translated; absent = it was not. */
  readonly translation?: string
  readonly durationMs: number | null
  readonly units: CountedUnits
  /** JSON: the upstream's own figures, under its own names. */
  readonly reported: string | null
  /** JSON: what the gateway counted, as far as it did. `units` are read from it where the upstream reported nothing. */
  readonly estimated: string | null
  readonly pricing: Pricing
  /** Exact decimal text; null when unpriced. */
  readonly cost: string | null
}

/** One thing an upstream charges for within a call, as it reported it, or as the gateway counted it (`estimated`). */
export interface ResponseUsage {
  /** One realtime session makes many entries. */
  readonly call: RequestContext
  readonly channelId: string
  /**
   * As the caller named it; of a transcription, the model that made it, where the upstream has named one. undefined where
   * neither has.
   */
  readonly model: string | undefined
  /** Of a transcription: the model that the session was opened with, if with any. */
  readonly sessionModel?: string | undefined
  /** `response`: one answer of the model. `input_transcription`: what the caller said, written down by another model. */
  readonly kind: 'response' | 'input_transcription'
  readonly units: Units
  readonly estimated: boolean
  /** What the gateway counted of it itself, where `units` are the upstream's; absent = nothing. */
  readonly estimate?: Units | undefined
  /** Absent = `ok`. */
  readonly outcome?: UsageOutcome
}

/** A task that is over, reported once by the writer of its end. */
export interface EndedTask {
  /** Unique among all tasks; a task reported twice is recorded once. */
  readonly id: string
  /** `ownerOf(caller)`. */
  readonly ownerId: string
  readonly usageClass: UsageClass
  readonly route: string
  readonly model: string
  readonly channelId: string
  readonly outcome: UsageOutcome
  /** undefined where it is not known what was used: that is unpriced. */
  readonly usage: Usage | undefined
  readonly durationMs: number | undefined
}

/** What an ended task has used, priced: to be written in the transaction that ends the task. */
export interface SettledTask {
  /** undefined where usage is not stored. */
  readonly record: UsageRecord | undefined
  /** To be called once the transaction has been committed: then it counts. */
  readonly whenWritten: () => void
}

/**
 * Records usage; the token under which capabilities inject it. Callers go on whatever it throws:
 * accounting never ends what it counts. Plain requests are counted without it, when they are over.
 */
export abstract class UsageRecorder {
  abstract record(entry: ResponseUsage): void
  /** For tasks whose end is not stored. */
  abstract taskEnded(task: EndedTask): void
  /** For tasks whose end is written down; undefined when nothing can be made of it, which the log tells. */
  abstract settleTask(task: EndedTask): SettledTask | undefined

  /**
   * Ends a task. `write` ends it in the store, in one transaction with the record it is given: a process that is killed leaves neither an end
   * without its usage nor usage without an end. It resolves with whether the task had not been ended before, and so does this.
   */
  async endTask(task: EndedTask, write: (record: UsageRecord | undefined) => Promise<boolean>): Promise<boolean> {
    const settled = this.settleTask(task)
    if (settled?.record === undefined) return await endedBy(() => write(undefined), settled?.whenWritten)
    try {
      return await endedBy(() => write(settled.record), settled.whenWritten)
    } catch (error) {
      if (error instanceof GatewayError) throw error
      // Accounting never keeps a task from ending: the record goes the way of all records that the store refuses.
      return await endedBy(
        () => write(undefined),
        () => {
          this.taskEnded(task)
        },
      )
    }
  }
}

async function endedBy(write: () => Promise<boolean>, whenWritten: (() => void) | undefined): Promise<boolean> {
  const isWritten = await write()
  if (isWritten) whenWritten?.()
  return isWritten
}
