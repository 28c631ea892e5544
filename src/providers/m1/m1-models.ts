import type { ModelFactsSection } from '../../config/channel-schema.js'
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

const CLASSIC: ModelFactsSection = { thinking: 'budget', systemRole: 'none', maxOutputTokens: 64_000 }
const BRIDGE: ModelFactsSection = { thinking: 'adaptive', systemRole: 'none', maxOutputTokens: 128_000 }
/** Models after Opus 4.6 choose their words themselves. */
const NEWER: ModelFactsSection = { ...BRIDGE, sampling: false, systemRole: 'system' }
const ALWAYS_THINKING: ModelFactsSection = { ...NEWER, thinkingOff: 'never' }
const NEWEST: ModelFactsSection = { ...ALWAYS_THINKING, forcedToolChoice: false }

const FACTS: Readonly<Record<string, ModelFactsSection>> = {
  'claude-3-haiku': { systemRole: 'none', maxOutputTokens: 4096 },
  'claude-3-5-haiku': { systemRole: 'none', maxOutputTokens: 8192 },
  'claude-3-7-sonnet': CLASSIC,
  'claude-sonnet-4-0': CLASSIC,
  'claude-sonnet-4': CLASSIC,
  'claude-opus-4-0': { ...CLASSIC, maxOutputTokens: 32_000 },
  'claude-opus-4': { ...CLASSIC, maxOutputTokens: 32_000 },
  'claude-opus-4-1': { ...CLASSIC, maxOutputTokens: 32_000 },
  'claude-sonnet-4-5': CLASSIC,
  'claude-haiku-4-5': CLASSIC,
  'claude-opus-4-5': CLASSIC,
  'claude-opus-4-6': BRIDGE,
  'claude-sonnet-4-6': BRIDGE,
  'claude-mythos-preview': { ...BRIDGE, sampling: false },
  'claude-opus-4-7': NEWER,
  'claude-opus-4-8': NEWER,
  'claude-sonnet-5': NEWER,
  'claude-opus-5': NEWER,
  'claude-fable-5': ALWAYS_THINKING,
  'claude-mythos-5': ALWAYS_THINKING,
  'claude-haiku-5-5': { ...NEWER, thinkingOff: 'between_tools' },
  'claude-sonnet-5-5': { ...NEWEST, thinkingOff: 'between_tools' },
  'claude-opus-5-5': NEWEST,
  'claude-fable-5-1': NEWEST,
  'claude-mythos-5-1': NEWEST,
  'claude-fable-5-2': NEWEST,
  'claude-mythos-5-2': NEWEST,
}

/** What translations to these models depend on, as the vendor's pages of models say; dated ids are those of their models. */
export const M1_MODEL_FACTS: Readonly<Record<string, ModelFactsSection>> = Object.fromEntries(
  Object.keys(M1_MODELS.messages ?? {}).map((id) => [id, FACTS[id.replace(/-(?:20\d{6}|latest)$/, '')] ?? {}]),
)
