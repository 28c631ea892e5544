import { GatewayError } from '../core/gateway-error.js'
import type { Thinking } from './messages.dto.js'

const MINIMUM_BUDGET_TOKENS = 1024
/** With this beta the budget spans several turns and may exceed one answer's maximum. */
const INTERLEAVED = 'interleaved-thinking'

/** Upstream's rules for the specification's thinking mode, judged before anyone pays. */
export function assertThinkingBudget(
  thinking: Thinking | null | undefined,
  maximumTokens: number | undefined,
  beta: string | undefined,
): void {
  if (thinking?.type !== 'enabled') return
  const budget = thinking.budget_tokens
  if (budget == null)
    throw refused('missing_required_parameter', "Missing required parameter: 'thinking.budget_tokens'.")
  if (budget < MINIMUM_BUDGET_TOKENS) {
    throw refused(
      'integer_below_min_value',
      `thinking.budget_tokens: Input should be greater than or equal to ${MINIMUM_BUDGET_TOKENS}`,
    )
  }
  if (maximumTokens === undefined || budget < maximumTokens || beta?.includes(INTERLEAVED) === true) return
  throw refused('integer_above_max_value', '`max_tokens` must be greater than `thinking.budget_tokens`.')
}

const refused = (code: string, message: string): GatewayError =>
  new GatewayError('invalid_request', message, { param: 'thinking.budget_tokens', code })
