import type { ModelsByClass } from '../contract.js'

/**
 * M1's public identifiers as of 2026-11-27, those of the vendor's SDK (@anthropic-ai/sdk 0.137.0 and 1.14.0) among
 * them, each with the day on which it was published; null where that is not known. A test compares this with the
 * types of the installed SDKs.
 */
export const M1_MODELS: ModelsByClass = {
  messages: {
    'claude-3-haiku-20240307': '2024-03-07',
    'claude-3-5-haiku-latest': '2024-10-22',
    'claude-3-5-haiku-20241022': '2024-10-22',
    'claude-3-7-sonnet-latest': '2025-02-24',
    'claude-3-7-sonnet-20250219': '2025-02-24',
    'claude-sonnet-4-0': '2025-05-22',
    'claude-sonnet-4-20250514': '2025-05-22',
    'claude-opus-4-0': '2025-05-22',
    'claude-opus-4-20250514': '2025-05-22',
    'claude-opus-4-1': '2025-08-05',
    'claude-opus-4-1-20250805': '2025-08-05',
    'claude-sonnet-4-5': '2025-09-29',
    'claude-sonnet-4-5-20250929': '2025-09-29',
    'claude-haiku-4-5': '2025-10-15',
    'claude-haiku-4-5-20251001': '2025-10-15',
    'claude-opus-4-5': '2025-11-24',
    'claude-opus-4-5-20251101': '2025-11-24',
    'claude-opus-4-6': '2026-02-05',
    'claude-sonnet-4-6': '2026-02-17',
    'claude-mythos-preview': '2026-04-07',
    'claude-opus-4-7': '2026-04-16',
    'claude-opus-4-8': '2026-05-28',
    'claude-fable-5': '2026-06-09',
    'claude-mythos-5': '2026-06-09',
    'claude-sonnet-5': '2026-06-30',
    'claude-opus-5': '2026-07-24',
    'claude-fable-5-1': null,
    'claude-mythos-5-1': null,
    'claude-opus-5-5': '2026-09-22',
    'claude-sonnet-5-5': '2026-09-28',
    'claude-haiku-5-5': '2026-10-07',
    'claude-fable-5-2': '2026-11-09',
    'claude-mythos-5-2': '2026-11-09',
  },
}

/** Models that think by default. */
export const M1_REASONING_MODELS: readonly string[] = [
  'claude-fable-5',
  'claude-mythos-5',
  'claude-sonnet-5',
  'claude-opus-5',
  'claude-fable-5-1',
  'claude-mythos-5-1',
  'claude-opus-5-5',
  'claude-sonnet-5-5',
  'claude-haiku-5-5',
  'claude-fable-5-2',
  'claude-mythos-5-2',
]
