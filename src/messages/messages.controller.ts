import { Controller } from '@nestjs/common'
import { ApiBearerAuth, ApiOkResponse, ApiOperation, ApiSecurity, ApiTags } from '@nestjs/swagger'
import type { ProviderResponse } from '../core/byte-stream.js'
import { ApiMessagesErrors } from '../dialects/error-docs.js'
import { Endpoint } from '../server/endpoint.decorator.js'
import { type JsonBodyRequest, JsonRequest } from '../server/json-request.js'
import { CountTokensRequestDto, MessagesDialect, type MessagesHeaders, MessagesRequestDto } from './messages.dto.js'
import { COUNT_TOKENS, MESSAGES } from './messages.endpoint.js'
import { MessagesService } from './messages.service.js'

@ApiTags('messages')
@ApiBearerAuth()
@ApiSecurity('x-api-key')
@Controller()
export class MessagesController {
  constructor(private readonly messages: MessagesService) {}

  @Endpoint(MESSAGES)
  @ApiOperation({ summary: 'Messages-style chat: text, thinking, tools' })
  @ApiOkResponse({
    description: 'A message, or its named events with stream true',
    content: {
      'application/json': { schema: { type: 'object', additionalProperties: true } },
      'text/event-stream': { schema: { type: 'string' } },
    },
  })
  @ApiMessagesErrors()
  create(
    @JsonRequest(MESSAGES, MessagesRequestDto) { body, call }: JsonBodyRequest<MessagesRequestDto>,
    @MessagesDialect() headers: MessagesHeaders,
  ): Promise<ProviderResponse> {
    return this.messages.create(body, headers, call)
  }

  @Endpoint(COUNT_TOKENS)
  @ApiOperation({ summary: 'How many input tokens a messages request would take' })
  @ApiOkResponse({ schema: { type: 'object', properties: { input_tokens: { type: 'integer' } } } })
  @ApiMessagesErrors()
  countTokens(
    @JsonRequest(COUNT_TOKENS, CountTokensRequestDto) { body, call }: JsonBodyRequest<CountTokensRequestDto>,
    @MessagesDialect() headers: MessagesHeaders,
  ): Promise<ProviderResponse> {
    return this.messages.countTokens(body, headers, call)
  }
}
