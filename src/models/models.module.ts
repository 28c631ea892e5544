import { Module } from '@nestjs/common'
import { AuthModule } from '../auth/auth.module.js'
import { MODEL, MODELS } from './models.endpoints.js'
import { ModelsController } from './models.controller.js'
import { ModelsService } from './models.service.js'

/** `GET /v1/models`: only what the caller's key may use. */
@Module({ imports: [AuthModule], controllers: [ModelsController], providers: [ModelsService] })
export class ModelsModule {
  static readonly endpoints = [MODELS, MODEL]
}
