import { Module } from '@nestjs/common'
import { AuthModule } from '../auth/auth.module.js'
import { ModerationsController } from './moderations.controller.js'
import { MODERATIONS } from './moderations.endpoint.js'

/** Moderations of texts. */
@Module({ imports: [AuthModule], controllers: [ModerationsController] })
export class ModerationsModule {
  static readonly endpoints = [MODERATIONS]
}
