import { Controller } from '@nestjs/common'
import type { ProviderResponse } from '../core/byte-stream.js'
import { Endpoint } from '../server/endpoint.decorator.js'
import { type JsonBodyRequest, JsonRequest } from '../server/json-request.js'
import { CountTokensRequestDto, MessagesDialect, type MessagesHeaders, MessagesRequestDto } from './messages.dto.js'
import { COUNT_TOKENS, MESSAGES } from './messages.endpoint.js'
import { MessagesService } from './messages.service.js'

@Controller()
export class MessagesController {
  constructor(private readonly messages: MessagesService) {}

  @Endpoint(MESSAGES)
  create(
    @JsonRequest(MESSAGES, MessagesRequestDto) { body, call }: JsonBodyRequest<MessagesRequestDto>,
    @MessagesDialect() headers: MessagesHeaders,
  ): Promise<ProviderResponse> {
    return this.messages.create(body, headers, call)
  }

  @Endpoint(COUNT_TOKENS)
  countTokens(
    @JsonRequest(COUNT_TOKENS, CountTokensRequestDto) { body, call }: JsonBodyRequest<CountTokensRequestDto>,
    @MessagesDialect() headers: MessagesHeaders,
  ): Promise<ProviderResponse> {
    return this.messages.countTokens(body, headers, call)
  }
}
