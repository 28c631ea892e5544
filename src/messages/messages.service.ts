import { Injectable } from '@nestjs/common'
import type { ProviderResponse } from '../core/byte-stream.js'
import { GatewayError } from '../core/errors.js'
import type { JsonBody } from '../core/json-body.js'
import type { RequestContext } from '../core/request-context.js'
import { asksForReasoning } from '../limits/estimate-usage.js'
import type { MessagesProvider } from '../providers/contract.js'
import { ProviderRouter, type Route } from '../routing/router.js'
import type { CountTokensRequestDto, MessagesHeaders, MessagesRequestDto, Thinking } from './messages.dto.js'
import { MESSAGES } from './messages.endpoint.js'

const MINIMUM_BUDGET_TOKENS = 1024
/** With this beta the budget spans several turns and may exceed one answer's maximum. */
const INTERLEAVED = 'interleaved-thinking'

/** Upstream's rules for the specification's thinking mode, judged before anyone pays. */
function assertThinkingBudget(
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

const POLICY = { canRetryAfterSend: true } as const

/** Messages-style chat; one model family only (specification: Messages-style chat). */
@Injectable()
export class MessagesService {
  constructor(private readonly router: ProviderRouter) {}

  create(
    body: JsonBody<MessagesRequestDto>,
    headers: MessagesHeaders,
    call: RequestContext,
  ): Promise<ProviderResponse> {
    const { model, thinking, max_tokens: maximumTokens } = body.fields
    assertThinkingBudget(thinking, maximumTokens, headers.beta)
    if (asksForReasoning(body.fields)) call.log.reasons = true
    const estimatedUse = call.quota === undefined ? undefined : MESSAGES.estimate(body.bytes.length, body.fields)
    return this.route(model, call).attempt(call, { ...POLICY, estimatedUse }, (provider, context) =>
      provider.create({ body, ...headers }, context),
    )
  }

  countTokens(
    body: JsonBody<CountTokensRequestDto>,
    headers: MessagesHeaders,
    call: RequestContext,
  ): Promise<ProviderResponse> {
    const { model, thinking } = body.fields
    assertThinkingBudget(thinking, undefined, headers.beta)
    return this.route(model, call).attempt(call, POLICY, (provider, context) =>
      provider.countTokens({ body, ...headers }, context),
    )
  }

  private route(model: string, call: RequestContext): Route<MessagesProvider> {
    call.log.model = model
    return this.router.route('messages', model, call.caller)
  }
}
