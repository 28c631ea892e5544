import { Module } from '@nestjs/common'
import { AuthModule } from '../auth/auth.module.js'
import { EmbeddingsController } from './embeddings.controller.js'
import { EMBEDDINGS } from './embeddings.endpoint.js'

/** Embeddings: texts to vectors. */
@Module({ imports: [AuthModule], controllers: [EmbeddingsController] })
export class EmbeddingsModule {
  static readonly endpoints = [EMBEDDINGS]
}
