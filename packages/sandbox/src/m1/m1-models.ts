import { M1Rejection } from './m1-errors.js'

export interface M1Model {
  /** The dated name answers carry. */
  readonly resolved: string
  readonly maxOutputTokens: number
  /** The old thinking form `enabled` with a budget works, sampling parameters are free, mid-conversation `system` is refused. */
  readonly classic: boolean
  /** `adaptive` thinking works. */
  readonly adaptive: boolean
}

const CLASSIC: Omit<M1Model, 'resolved'> = { maxOutputTokens: 64_000, classic: true, adaptive: false }
const BRIDGE: Omit<M1Model, 'resolved'> = { maxOutputTokens: 64_000, classic: true, adaptive: true }
const NEWER: Omit<M1Model, 'resolved'> = { maxOutputTokens: 128_000, classic: false, adaptive: true }

const MODELS: Readonly<Record<string, M1Model>> = {
  'claude-haiku-4-5': { ...CLASSIC, resolved: 'claude-haiku-4-5-20251001' },
  'claude-sonnet-4-5': { ...CLASSIC, resolved: 'claude-sonnet-4-5-20250929' },
  'claude-opus-4-5': { ...CLASSIC, resolved: 'claude-opus-4-5-20251101' },
  'claude-opus-4-1': { ...CLASSIC, maxOutputTokens: 32_000, resolved: 'claude-opus-4-1-20250805' },
  'claude-sonnet-4-6': { ...BRIDGE, resolved: 'claude-sonnet-4-6' },
  'claude-opus-4-6': { ...BRIDGE, resolved: 'claude-opus-4-6' },
  'claude-opus-4-7': { ...NEWER, resolved: 'claude-opus-4-7' },
  'claude-opus-4-8': { ...NEWER, resolved: 'claude-opus-4-8' },
  'claude-sonnet-5': { ...NEWER, resolved: 'claude-sonnet-5' },
  'claude-opus-5': { ...NEWER, resolved: 'claude-opus-5' },
}

/** Unknown ids are taken for a classic model of that name, unless they begin with `missing-`. Throws the 404. */
export function m1Model(id: string): M1Model {
  if (id.startsWith('missing-')) throw new M1Rejection(404, `model: ${id}`)
  const undated = id.replace(/-20\d{6}$/, '')
  const known = Object.hasOwn(MODELS, undated) ? MODELS[undated] : undefined
  if (known !== undefined) return undated === id ? known : { ...known, resolved: id }
  return { ...BRIDGE, resolved: id }
}
