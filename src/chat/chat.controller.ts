import { Controller, HttpCode, Post, UseGuards } from '@nestjs/common'
import { ApiBearerAuth, ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger'
import { KeyGuard } from '../auth/key.guard.js'
import type { ProviderResponse } from '../core/byte-stream.js'
import { ApiChatErrors } from '../dialects/error-docs.js'
import { type JsonBodyRequest, JsonRequest } from '../server/json-request.js'
import { ChatRequestDto } from './chat.dto.js'
import { ChatService } from './chat.service.js'

@ApiTags('chat')
@ApiBearerAuth()
@Controller('v1/chat/completions')
@UseGuards(KeyGuard)
export class ChatController {
  constructor(private readonly chat: ChatService) {}

  @Post()
  @HttpCode(200)
  @ApiOperation({ summary: 'Chat completion: text, tools, audio in and out' })
  @ApiOkResponse({
    description: 'A chat.completion, or chat.completion.chunk events with stream true',
    content: {
      'application/json': { schema: { type: 'object', additionalProperties: true } },
      'text/event-stream': { schema: { type: 'string' } },
    },
  })
  @ApiChatErrors()
  complete(@JsonRequest(ChatRequestDto) { body, call }: JsonBodyRequest<ChatRequestDto>): Promise<ProviderResponse> {
    return this.chat.complete(body, call)
  }
}
