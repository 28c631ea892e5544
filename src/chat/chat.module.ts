import { Module } from '@nestjs/common'
import { AuthModule } from '../auth/auth.module.js'
import { CHAT_COMPLETIONS } from './chat.endpoint.js'
import { ChatController } from './chat.controller.js'
import { ChatService } from './chat.service.js'

/** Chat completions (specification: Chat completion). */
@Module({ imports: [AuthModule], controllers: [ChatController], providers: [ChatService] })
export class ChatModule {
  static readonly endpoints = [CHAT_COMPLETIONS]
}
