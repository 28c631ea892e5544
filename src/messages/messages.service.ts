import { Injectable } from '@nestjs/common'
import type { JsonBody } from '../core/json-body.js'
import type { Call } from '../core/request-context.js'
import type { UpstreamAnswer } from '../core/upstream-answer.js'
import { expectedOfChat } from '../limits/estimate-usage.js'
import type { MessagesProvider } from '../providers/messages.contract.js'
import { ProviderRouter, type Route } from '../routing/router.js'
import type { MessagesHeaders } from './messages-headers.decorator.js'
import type { CountTokensRequestDto, MessagesRequestDto } from './messages.dto.js'
import { assertThinkingBudget } from './thinking-budget.js'

const POLICY = { repeatableOnceSent: true } as const

/** Messages-style chat; one model family only (specification: Messages-style chat). */
@Injectable()
export class MessagesService {
  constructor(private readonly router: ProviderRouter) {}

  create(body: JsonBody<MessagesRequestDto>, headers: MessagesHeaders, call: Call): Promise<UpstreamAnswer> {
    const { model, thinking, max_tokens: maximumTokens } = body.fields
    assertThinkingBudget(thinking, maximumTokens, headers.beta)
    const expected = call.allowance === undefined ? undefined : expectedOfChat(body.bytes.length, body.fields)
    return this.route(model, call).attempt(call, { ...POLICY, expected }, (provider, context) =>
      provider.create({ body, ...headers }, context),
    )
  }

  countTokens(body: JsonBody<CountTokensRequestDto>, headers: MessagesHeaders, call: Call): Promise<UpstreamAnswer> {
    const { model, thinking } = body.fields
    assertThinkingBudget(thinking, undefined, headers.beta)
    return this.route(model, call).attempt(call, POLICY, (provider, context) =>
      provider.countTokens({ body, ...headers }, context),
    )
  }

  private route(model: string, call: Call): Route<MessagesProvider> {
    call.log.model = model
    return this.router.messages(model, call.caller)
  }
}
