import { type ReasoningAsked, ResponsesDraft } from '../responses/request-draft.js'
import { EFFORTS, type ThinkingFields, withoutThinking, withThinking } from '../to-messages/thinking.js'
import type { ToolChoice } from '../tools.js'

/** What is known of a messages request before all fields have been read, some of which depend on others. */
export class MessagesDraft extends ResponsesDraft {
  reasoning: ReasoningAsked | undefined
  toolChoice: ToolChoice | undefined
  isSerial = false
  maximumTokens: number | undefined
  /** Members of `output_config`. */
  readonly outputConfig: Record<string, unknown> = {}
}

const EFFORT = 'reasoning.effort'

/** What the rest of the request says of thinking. */
export interface ThinkingRequest {
  readonly maximumTokens: number
  /**
   * Upstreams do not let a model think that must call a tool; nor one with a budget whose turn, the tool loop since the user spoke, does
   * not begin with what it thought.
   */
  readonly isAllowed: boolean
}

/** Sets `thinking` and `output_config.effort`; true if the model thinks. */
export function setThinking(
  asked: ReasoningAsked | undefined,
  request: ThinkingRequest,
  draft: MessagesDraft,
): boolean {
  const { effort, summaryPath } = asked ?? {}
  const { verdicts, facts, outputConfig, paths } = draft
  if (effort !== undefined && effort !== 'none' && !EFFORTS.includes(effort)) {
    verdicts.refuse(EFFORT, `Send one of none, ${EFFORTS.join(', ')}.`)
  }
  const fields =
    effort === 'none' ? withoutThinking(facts, EFFORT, verdicts) : thinkingAsked(effort, summaryPath, request, draft)
  if (fields.effort !== undefined) {
    outputConfig['effort'] = fields.effort
    paths.set('output_config.effort', EFFORT)
  }
  if (fields.thinking === undefined) return false
  draft.set('thinking', fields.thinking, fields.thinking['type'] === 'adaptive' ? 'reasoning' : EFFORT)
  return effort !== 'none'
}

function thinkingAsked(
  effort: string | undefined,
  summaryPath: string | undefined,
  { maximumTokens, isAllowed }: ThinkingRequest,
  { verdicts, facts }: MessagesDraft,
): ThinkingFields {
  if (facts.thinking === 'none' || (facts.thinking === 'budget' && effort === undefined)) {
    // There are no thoughts to sum up.
    if (effort !== undefined) verdicts.drop(EFFORT)
    if (summaryPath !== undefined) verdicts.drop(summaryPath)
    return {}
  }
  if (effort === undefined && summaryPath === undefined) return {}
  const display = summaryPath === undefined ? {} : { display: 'summarized' }
  // Never a 400 in the middle of an agent's loop: the model goes on without thinking.
  if (!isAllowed) verdicts.approximate('reasoning')
  return withThinking(effort, { facts, maximumTokens, isAllowed, display, effortPath: EFFORT }, verdicts)
}
