import { Module } from '@nestjs/common'
import { AuthModule } from '../auth/auth.module.js'
import { ModelsController, ModelsService } from './models.controller.js'

/** `GET /v1/models`: only what the caller's key may use. */
@Module({ imports: [AuthModule], controllers: [ModelsController], providers: [ModelsService] })
export class ModelsModule {}
