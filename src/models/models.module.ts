import { Module } from '@nestjs/common'
import { AuthModule } from '../auth/auth.module.js'
import { ProvidersModule } from '../routing/providers.module.js'
import { ModelsController, ModelsService } from './models.controller.js'

/** `GET /v1/models`: only what the caller's key may use. */
@Module({ imports: [AuthModule, ProvidersModule], controllers: [ModelsController], providers: [ModelsService] })
export class ModelsModule {}
