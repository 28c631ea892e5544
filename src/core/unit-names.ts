import type { CountedUnits } from './counted-units.js'

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
