import { Module } from '@nestjs/common'
import { AuthModule } from '../common/auth/auth.module.js'
import { ProvidersModule } from '../providers/providers.module.js'
import { ModelsController } from './models.controller.js'
import { ModelsService } from './models.service.js'

/** `GET /v1/models`: only what the caller's key may use. */
@Module({ imports: [AuthModule, ProvidersModule], controllers: [ModelsController], providers: [ModelsService] })
export class ModelsModule {}
