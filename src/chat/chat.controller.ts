import { Controller } from '@nestjs/common'
import type { ProviderResponse } from '../core/byte-stream.js'
import { Endpoint } from '../server/endpoint.decorator.js'
import { type JsonBodyRequest, JsonRequest } from '../server/json-request.js'
import { ChatRequestDto } from './chat.dto.js'
import { CHAT_COMPLETIONS } from './chat.endpoint.js'
import { ChatService } from './chat.service.js'

@Controller()
export class ChatController {
  constructor(private readonly chat: ChatService) {}

  @Endpoint(CHAT_COMPLETIONS)
  complete(
    @JsonRequest(CHAT_COMPLETIONS, ChatRequestDto) { body, call }: JsonBodyRequest<ChatRequestDto>,
  ): Promise<ProviderResponse> {
    return this.chat.complete(body, call)
  }
}
