import type { ModelFacts } from '../../model-facts.js'
import type { Verdicts } from '../../verdicts.js'
import { effortTaken, MESSAGES_EFFORTS } from '../efforts.js'
import type { Members } from '../members.js'

const SMALLEST_BUDGET = 1024
const LARGEST_BUDGET = 32_000

/** Budget of each effort, in tokens; a budget between two of them means the lower effort. */
const BUDGETS: ReadonlyMap<string, number> = new Map([
  ['minimal', SMALLEST_BUDGET],
  ['low', 2048],
  ['medium', 8192],
  ['high', 16_384],
  ['xhigh', LARGEST_BUDGET],
])

/** The efforts that there are, beside none. */
export const EFFORTS: readonly string[] = [...BUDGETS.keys(), 'max']

/** The effort for a budget: the last one that has no more. */
export const effortFor = (budgetTokens: number): string =>
  [...BUDGETS].findLast(([, tokens]) => tokens <= budgetTokens)?.[0] ?? 'minimal'

/** Of the maximum of tokens; the rest is for the answer. */
const LARGEST_SHARE = 0.8

/** Members of the upstream's request; the effort is one of `output_config`. */
export interface ThinkingFields {
  readonly thinking?: Members
  readonly effort?: string
}

/** What else is said of thinking. */
interface ThinkingTerms {
  readonly facts: ModelFacts
  readonly maximumTokens: number
  /** Whether the rest of the request lets the model think. */
  readonly isAllowed: boolean
  /** What is to be shown of the thoughts. */
  readonly display: Members
  /** Where the caller names the effort. */
  readonly effortPath: string
}

/** How a model that can think is asked to, with one of the efforts or none named. */
export const withThinking = (effort: string | undefined, terms: ThinkingTerms, verdicts: Verdicts): ThinkingFields =>
  terms.facts.thinking === 'adaptive'
    ? adaptiveThinking(effort, terms, verdicts)
    : budgetThinking(effort ?? 'minimal', terms, verdicts)

/** Switches thinking off in models that think by themselves, or asks for little of it where they cannot be kept from it. */
export function withoutThinking(
  { thinking, thinkingOff, efforts = MESSAGES_EFFORTS }: ModelFacts,
  path: string,
  verdicts: Verdicts,
): ThinkingFields {
  if (thinking !== 'adaptive') return {}
  if (thinkingOff === 'never') return { effort: effortTaken('none', path, efforts, verdicts) }
  if (thinkingOff !== 'disabled') verdicts.approximate(path)
  return { thinking: { type: thinkingOff } }
}

function adaptiveThinking(
  effort: string | undefined,
  { isAllowed, display, effortPath, facts: { efforts = MESSAGES_EFFORTS } }: ThinkingTerms,
  verdicts: Verdicts,
): ThinkingFields {
  const named = effort === undefined ? {} : { effort: effortTaken(effort, effortPath, efforts, verdicts) }
  // Left out, not disabled: there are models that cannot be switched off.
  return isAllowed ? { thinking: { type: 'adaptive', ...display }, ...named } : named
}

function budgetThinking(
  effort: string,
  { isAllowed, display, effortPath, maximumTokens }: ThinkingTerms,
  verdicts: Verdicts,
): ThinkingFields {
  if (!isAllowed) return {}
  verdicts.approximate(effortPath)
  // The budget must be less than the maximum, and has a minimum of its own.
  if (maximumTokens <= SMALLEST_BUDGET) return {}
  const largest = Math.max(SMALLEST_BUDGET, Math.floor(maximumTokens * LARGEST_SHARE))
  const budget_tokens = Math.min(BUDGETS.get(effort) ?? LARGEST_BUDGET, largest)
  return { thinking: { type: 'enabled', budget_tokens, ...display } }
}
