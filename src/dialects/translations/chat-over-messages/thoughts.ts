import { isRecord } from '../../../core/validation-rules.js'
import type { ModelFacts } from '../../model-facts.js'
import type { TranslationTarget } from '../../translator.js'
import type { Verdicts } from '../../verdicts.js'
import { invalidShape, isAbsent, type Members } from '../members.js'
import type { Block } from './parts.js'

/** What a model thought in one turn: before its first call, and so before all its text, and before each of its other calls. */
export interface TurnThoughts {
  readonly first: readonly Block[]
  before(call: number): readonly Block[]
}

/**
 * The blocks of a turn as the upstream made them, which it wants back unchanged. What is remembered wins over what the caller hands
 * back in part: the stream helper of the client's SDK keeps only the last of several.
 */
export function turnThoughts(
  handedBack: unknown,
  path: string,
  callIds: readonly string[],
  { thoughts, seals }: Pick<TranslationTarget, 'thoughts' | 'seals'>,
  verdicts: Verdicts,
): TurnThoughts {
  const remembered = callIds.map((id) => rememberedBlocks(thoughts?.recall(id)))
  if (remembered.some((blocks) => blocks.length > 0)) {
    return { first: remembered[0] ?? [], before: (call) => remembered[call] ?? [] }
  }
  const first = handedBackBlocks(handedBack, path, (signature) => seals.isOwn(signature), verdicts)
  return { first, before: () => [] }
}

const NONE: readonly Block[] = []

function rememberedBlocks(text: string | undefined): readonly Block[] {
  if (text === undefined) return NONE
  const blocks: unknown = JSON.parse(text)
  return Array.isArray(blocks) ? blocks.filter(isBlock) : NONE
}

const isBlock = (value: unknown): value is Block => isRecord(value) && typeof value['type'] === 'string'

/** Blocks that no upstream can have made are left out rather than refused: an agent would be stuck in the middle of its loop. */
function handedBackBlocks(
  value: unknown,
  path: string,
  isOwn: (signature: string) => boolean,
  verdicts: Verdicts,
): readonly Block[] {
  if (isAbsent(value)) return NONE
  if (!Array.isArray(value)) {
    verdicts.drop(path)
    return NONE
  }
  return value.flatMap((item: unknown, index) => {
    const block = isRecord(item) ? thinkingBlock(item) : undefined
    if (block === undefined) verdicts.drop(`${path}[${index}]`)
    // The gateway's own signature: of a chat upstream's thoughts, which this upstream would refuse.
    return block === undefined || isOwn(String(block['signature'])) ? [] : [block]
  })
}

/** Verbatim, also an empty text with its signature; undefined for what is no such block. */
export function thinkingBlock({ type, thinking, signature, data }: Members): Block | undefined {
  if (type === 'redacted_thinking') return typeof data === 'string' ? { type, data } : undefined
  if (type !== 'thinking' || typeof thinking !== 'string' || typeof signature !== 'string') return undefined
  return signature === '' ? undefined : { type, thinking, signature }
}

const THINKING_TYPES: ReadonlySet<unknown> = new Set(['thinking', 'redacted_thinking'])

export const isThinking = (block: Block | undefined): boolean => THINKING_TYPES.has(block?.type)

/** Tokens for an effort, where a model is told a budget. */
export const BUDGETS: Readonly<Record<string, number>> = {
  minimal: 1024,
  low: 2048,
  medium: 8192,
  high: 16_384,
  xhigh: 32_000,
  max: 32_000,
}

/** The effort's name, where a model decides by itself. */
export const EFFORTS: Readonly<Record<string, string>> = {
  minimal: 'low',
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'xhigh',
  max: 'max',
}

const SMALLEST_BUDGET = 1024
/** Of the maximum of tokens; the rest is for the answer. */
const LARGEST_SHARE = 0.8

/** What the rest of the request says about thinking. */
export interface ThinkingTerms {
  readonly facts: ModelFacts
  readonly maximumTokens: number
  /** A tool must be called, or an assistant's message gone on with: upstreams then do not let a model think. */
  readonly isImpossible: boolean
  /** The last turn called tools, and what was thought before is lost: upstreams would refuse the turn of a model that thinks. */
  readonly isLost: boolean
}

export interface ThinkingFields {
  readonly thinking?: Members
  readonly effort?: string
}

/** `thinking` and `output_config.effort` for a `reasoning_effort`. */
export function thinkingFields(effort: unknown, terms: ThinkingTerms, verdicts: Verdicts): ThinkingFields {
  if (isAbsent(effort)) return {}
  if (effort === 'none') return withoutThinking(terms.facts, verdicts)
  if (typeof effort !== 'string' || !Object.hasOwn(EFFORTS, effort)) {
    throw invalidShape('reasoning_effort', `one of none, ${Object.keys(EFFORTS).join(', ')}`)
  }
  if (terms.facts.thinking === 'none') {
    verdicts.drop('reasoning_effort')
    return {}
  }
  const isAllowed = mayThink(terms, verdicts)
  return terms.facts.thinking === 'adaptive'
    ? adaptiveThinking(effort, isAllowed, verdicts)
    : budgetThinking(effort, isAllowed, terms, verdicts)
}

/** Models that think by themselves are told not to; those that cannot be are told to think little. */
function withoutThinking({ thinking, thinkingOff }: ModelFacts, verdicts: Verdicts): ThinkingFields {
  if (thinking !== 'adaptive') return {}
  if (thinkingOff === 'disabled') return { thinking: { type: thinkingOff } }
  verdicts.approximate('reasoning_effort')
  return thinkingOff === 'never' ? { effort: 'low' } : { thinking: { type: thinkingOff } }
}

/** For a turn without its thoughts, never a 400 in the middle of an agent's loop: the model goes on without thinking. */
function mayThink({ isImpossible, isLost }: ThinkingTerms, verdicts: Verdicts): boolean {
  if (isLost) verdicts.approximate('thinking')
  else if (isImpossible) verdicts.approximate('reasoning_effort')
  return !isImpossible && !isLost
}

function adaptiveThinking(effort: string, isAllowed: boolean, verdicts: Verdicts): ThinkingFields {
  if (effort === 'minimal') verdicts.approximate('reasoning_effort')
  const name = { effort: EFFORTS[effort] ?? effort }
  // Left out, not disabled: some models refuse to be switched off. Newer ones keep their thoughts to themselves unless asked.
  return isAllowed ? { thinking: { type: 'adaptive', display: 'summarized' }, ...name } : name
}

function budgetThinking(
  effort: string,
  isAllowed: boolean,
  { maximumTokens }: ThinkingTerms,
  verdicts: Verdicts,
): ThinkingFields {
  if (!isAllowed) return {}
  verdicts.approximate('reasoning_effort')
  // The budget must be less than the maximum, and has a minimum of its own.
  if (maximumTokens <= SMALLEST_BUDGET) return {}
  const largest = Math.max(SMALLEST_BUDGET, Math.floor(maximumTokens * LARGEST_SHARE))
  return { thinking: { type: 'enabled', budget_tokens: Math.min(BUDGETS[effort] ?? SMALLEST_BUDGET, largest) } }
}
