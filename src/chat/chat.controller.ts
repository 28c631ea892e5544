import { Controller } from '@nestjs/common'
import { ApiBearerAuth, ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger'
import type { ProviderResponse } from '../core/byte-stream.js'
import { ApiChatErrors } from '../dialects/error-docs.js'
import { Endpoint } from '../server/endpoint.decorator.js'
import { type JsonBodyRequest, JsonRequest } from '../server/json-request.js'
import { ChatRequestDto } from './chat.dto.js'
import { CHAT_COMPLETIONS } from './chat.endpoint.js'
import { ChatService } from './chat.service.js'

@ApiTags('chat')
@ApiBearerAuth()
@Controller()
export class ChatController {
  constructor(private readonly chat: ChatService) {}

  @Endpoint(CHAT_COMPLETIONS)
  @ApiOperation({ summary: 'Chat completion: text, tools, audio in and out' })
  @ApiOkResponse({
    description: 'A chat.completion, or chat.completion.chunk events with stream true',
    content: {
      'application/json': { schema: { type: 'object', additionalProperties: true } },
      'text/event-stream': { schema: { type: 'string' } },
    },
  })
  @ApiChatErrors()
  complete(
    @JsonRequest(CHAT_COMPLETIONS, ChatRequestDto) { body, call }: JsonBodyRequest<ChatRequestDto>,
  ): Promise<ProviderResponse> {
    return this.chat.complete(body, call)
  }
}
