import { Module } from '@nestjs/common'
import { AuthModule } from '../auth/auth.module.js'
import { ProvidersModule } from '../routing/providers.module.js'
import { HttpModule } from '../upstream/upstream.module.js'
import { DocumentCache } from './document-cache.js'
import { DocumentReception } from './document-upload.js'
import { DocumentClient } from './document.client.js'
import { DocumentController } from './document.controller.js'
import { DocumentService } from './document.service.js'
import { FetchesInFlight } from './fetches-in-flight.js'
import { LocalReader } from './local-parser.js'
import { ParserPoolModule } from './parser-pool.module.js'
import { SharedReadings } from './shared-readings.js'

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
