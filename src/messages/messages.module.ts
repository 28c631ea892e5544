import { Module } from '@nestjs/common'
import { AuthModule } from '../auth/auth.module.js'
import { COUNT_TOKENS, MESSAGES } from './messages.endpoint.js'
import { MessagesController } from './messages.controller.js'
import { MessagesService } from './messages.service.js'

/** Messages-style chat (specification: Messages-style chat). */
@Module({ imports: [AuthModule], controllers: [MessagesController], providers: [MessagesService] })
export class MessagesModule {
  static readonly endpoints = [MESSAGES, COUNT_TOKENS]
}
