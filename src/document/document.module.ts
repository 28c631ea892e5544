import { Module } from '@nestjs/common'
import { AuthModule } from '../auth/auth.module.js'
import { ProvidersModule } from '../routing/providers.module.js'
import { HttpModule } from '../upstream/upstream.module.js'
import { DocumentCache, SharedReadings } from './document-cache.js'
import { DocumentClient, FetchesInFlight } from './document-fetch.js'
import { DocumentReception } from './document-upload.js'
import { DocumentController } from './document.controller.js'
import { DocumentService } from './document.service.js'
import { LocalReader } from './local-parser.js'
import { ParserPoolModule } from './parser-pool.module.js'

/** Documents as Markdown (specification: Document parse result). */
@Module({
  imports: [AuthModule, HttpModule, ProvidersModule, ParserPoolModule],
  controllers: [DocumentController],
  providers: [
    ...[DocumentService, DocumentReception, DocumentClient, DocumentCache],
    ...[FetchesInFlight, LocalReader, SharedReadings],
  ],
})
export class DocumentModule {}
