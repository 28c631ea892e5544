import { Controller, HttpCode, Post, UseGuards } from '@nestjs/common'
import { ApiBearerAuth, ApiOkResponse, ApiOperation, ApiSecurity, ApiTags } from '@nestjs/swagger'
import { KeyGuard } from '../auth/key.guard.js'
import type { ProviderResponse } from '../core/byte-stream.js'
import { ApiMessagesErrors } from '../dialects/error-docs.js'
import { type JsonBodyRequest, JsonRequest } from '../server/json-request.js'
import { CountTokensRequestDto, MessagesDialect, type MessagesHeaders, MessagesRequestDto } from './messages.dto.js'
import { MessagesService } from './messages.service.js'

@ApiTags('messages')
@ApiBearerAuth()
@ApiSecurity('x-api-key')
@Controller('v1/messages')
@UseGuards(KeyGuard)
export class MessagesController {
  constructor(private readonly messages: MessagesService) {}

  @Post()
  @HttpCode(200)
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
    @JsonRequest(MessagesRequestDto) { body, call }: JsonBodyRequest<MessagesRequestDto>,
    @MessagesDialect() headers: MessagesHeaders,
  ): Promise<ProviderResponse> {
    return this.messages.create(body, headers, call)
  }

  @Post('count_tokens')
  @HttpCode(200)
  @ApiOperation({ summary: 'How many input tokens a messages request would take' })
  @ApiOkResponse({ schema: { type: 'object', properties: { input_tokens: { type: 'integer' } } } })
  @ApiMessagesErrors()
  countTokens(
    @JsonRequest(CountTokensRequestDto) { body, call }: JsonBodyRequest<CountTokensRequestDto>,
    @MessagesDialect() headers: MessagesHeaders,
  ): Promise<ProviderResponse> {
    return this.messages.countTokens(body, headers, call)
  }
}
