import { M1Rejection } from './m1-errors.js'

export interface M1Model {
  /** The dated name answers carry. */
  readonly resolved: string
  readonly maxOutputTokens: number
  /** The old thinking form `enabled` with a budget works, sampling parameters are free, mid-conversation `system` is refused. */
  readonly classic: boolean
  /** `adaptive` thinking works. */
  readonly adaptive: boolean
  /** What turns thinking off; undefined where it cannot be turned off. */
  readonly thinkingOff: 'disabled' | 'between_tools' | undefined
  /** `output_config.effort` works. */
  readonly effort: boolean
  /** `tool_choice` may force a tool. */
  readonly forcedTools: boolean
  /** `speed` asks for a beta header. */
  readonly speedInBeta: boolean
}

type Traits = Omit<M1Model, 'resolved'>

const CLASSIC: Traits = {
  maxOutputTokens: 64_000,
  classic: true,
  adaptive: false,
  thinkingOff: 'disabled',
  effort: false,
  forcedTools: true,
  speedInBeta: true,
}
const BRIDGE: Traits = { ...CLASSIC, maxOutputTokens: 128_000, adaptive: true, effort: true }
const NEWER: Traits = { ...BRIDGE, classic: false }
const FIFTH: Traits = { ...NEWER, speedInBeta: false }
const ALWAYS_THINKING: Traits = { ...FIFTH, thinkingOff: undefined }
const NEWEST: Traits = { ...ALWAYS_THINKING, forcedTools: false }

/** Output caps and what each refuses, as its page in the vendor's documentation says (November 2026). */
const MODELS: Readonly<Record<string, Traits & { readonly dated?: string }>> = {
  'claude-3-haiku': { ...CLASSIC, maxOutputTokens: 4096 },
  'claude-3-5-haiku': { ...CLASSIC, maxOutputTokens: 8192 },
  'claude-3-7-sonnet': CLASSIC,
  'claude-sonnet-4': CLASSIC,
  'claude-sonnet-4-0': CLASSIC,
  'claude-opus-4': { ...CLASSIC, maxOutputTokens: 32_000 },
  'claude-opus-4-0': { ...CLASSIC, maxOutputTokens: 32_000 },
  'claude-opus-4-1': { ...CLASSIC, maxOutputTokens: 32_000, dated: '20250805' },
  'claude-sonnet-4-5': { ...CLASSIC, dated: '20250929' },
  'claude-haiku-4-5': { ...CLASSIC, dated: '20251001' },
  'claude-opus-4-5': { ...CLASSIC, effort: true, dated: '20251101' },
  'claude-sonnet-4-6': BRIDGE,
  'claude-opus-4-6': BRIDGE,
  'claude-mythos-preview': BRIDGE,
  'claude-opus-4-7': NEWER,
  'claude-opus-4-8': NEWER,
  'claude-sonnet-5': FIFTH,
  'claude-opus-5': FIFTH,
  'claude-fable-5': ALWAYS_THINKING,
  'claude-mythos-5': ALWAYS_THINKING,
  'claude-haiku-5-5': { ...FIFTH, thinkingOff: 'between_tools' },
  'claude-sonnet-5-5': { ...NEWEST, thinkingOff: 'between_tools' },
  'claude-opus-5-5': NEWEST,
  'claude-fable-5-1': NEWEST,
  'claude-mythos-5-1': NEWEST,
  'claude-fable-5-2': NEWEST,
  'claude-mythos-5-2': NEWEST,
}

/** Without the day of its publication. */
const plainId = (id: string): string => id.replace(/-(20\d{6}|latest)$/, '')

export const isKnownM1Model = (id: string): boolean => Object.hasOwn(MODELS, plainId(id))

/** Unknown ids are taken for a model that allows most, unless they begin with `missing-`. Throws the 404. */
export function m1Model(id: string): M1Model {
  if (id.startsWith('missing-')) throw new M1Rejection(404, `model: ${id}`)
  const plain = plainId(id)
  const known = isKnownM1Model(id) ? MODELS[plain] : undefined
  if (known === undefined) return { ...BRIDGE, resolved: id }
  const { dated, ...traits } = known
  return { ...traits, resolved: plain === id && dated !== undefined ? `${id}-${dated}` : id }
}
