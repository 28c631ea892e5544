import type { ReasoningAsked } from '../responses/request-draft.js'
import type { MessagesDraft } from './messages-draft.js'

/** Tokens for an effort, where a model is told a budget. */
export const BUDGETS: ReadonlyMap<string, number> = new Map([
  ['minimal', 1024],
  ['low', 2048],
  ['medium', 8192],
  ['high', 16_384],
  ['xhigh', 32_000],
  ['max', 32_000],
])

const SMALLEST_BUDGET = 1024
/** Of the maximum of tokens; the rest is for the answer. */
const LARGEST_SHARE = 0.8

const EFFORT = 'reasoning.effort'

/** What the rest of the request says of thinking. */
export interface ThinkingTerms {
  readonly maximumTokens: number
  /** The last turn called tools, and its thoughts are lost: upstreams refuse such a turn of a model that thinks. */
  readonly isLost: boolean
}

/** Sets `thinking` and `output_config.effort`; true if the model thinks. */
export function setThinking(asked: ReasoningAsked | undefined, terms: ThinkingTerms, draft: MessagesDraft): boolean {
  if (asked === undefined) return false
  const { effort, summaryPath } = asked
  const { verdicts, facts } = draft
  if (effort !== undefined && effort !== 'none' && !BUDGETS.has(effort)) {
    verdicts.refuse(EFFORT, `Send one of none, ${[...BUDGETS.keys()].join(', ')}.`)
  }
  if (effort === 'none') {
    if (facts.thinking === 'adaptive') setThinkingOff(draft)
    return false
  }
  if (facts.thinking === 'none' || (facts.thinking === 'budget' && effort === undefined)) {
    // There are no thoughts to sum up.
    if (effort !== undefined) verdicts.drop(EFFORT)
    if (summaryPath !== undefined) verdicts.drop(summaryPath)
    return false
  }
  if (effort === undefined && summaryPath === undefined) return false
  const display = summaryPath === undefined ? {} : { display: 'summarized' }
  return facts.thinking === 'adaptive'
    ? adaptiveThinking(effort, display, terms, draft)
    : budgetThinking(effort ?? 'minimal', display, terms, draft)
}

/** Models that think by themselves are told not to; those that cannot be are told to think little. */
function setThinkingOff(draft: MessagesDraft): void {
  const { thinkingOff } = draft.facts
  if (thinkingOff !== 'disabled') draft.verdicts.approximate(EFFORT)
  if (thinkingOff === 'never') setEffort('low', draft)
  else draft.set('thinking', { type: thinkingOff }, EFFORT)
}

function setEffort(effort: string, { outputConfig, paths }: MessagesDraft): void {
  outputConfig['effort'] = effort
  paths.set('output_config.effort', EFFORT)
}

/** For a turn without its thoughts never a 400 in the middle of an agent's loop: the model goes on without thinking. */
function mayThink({ isLost }: ThinkingTerms, { verdicts, isForced }: MessagesDraft): boolean {
  // Upstreams do not let a model think that must call a tool.
  if (isLost || isForced) verdicts.approximate('reasoning')
  return !isLost && !isForced
}

function adaptiveThinking(
  effort: string | undefined,
  display: object,
  terms: ThinkingTerms,
  draft: MessagesDraft,
): boolean {
  if (effort === 'minimal') draft.verdicts.approximate(EFFORT)
  if (effort !== undefined) setEffort(effort === 'minimal' ? 'low' : effort, draft)
  // Left out, not disabled: there are models that cannot be switched off.
  const isThinking = mayThink(terms, draft)
  if (isThinking) draft.set('thinking', { type: 'adaptive', ...display }, 'reasoning')
  return isThinking
}

function budgetThinking(effort: string, display: object, terms: ThinkingTerms, draft: MessagesDraft): boolean {
  if (!mayThink(terms, draft)) return false
  draft.verdicts.approximate(EFFORT)
  const { maximumTokens } = terms
  // It must be less than the maximum, and has a minimum of its own.
  if (maximumTokens <= SMALLEST_BUDGET) return false
  const largest = Math.max(SMALLEST_BUDGET, Math.floor(maximumTokens * LARGEST_SHARE))
  const budget_tokens = Math.min(BUDGETS.get(effort) ?? SMALLEST_BUDGET, largest)
  draft.set('thinking', { type: 'enabled', budget_tokens, ...display }, EFFORT)
  return true
}
