import { Module } from '@nestjs/common'
import { AuthModule } from '../common/auth/auth.module.js'
import { HttpModule } from '../common/http/http.module.js'
import { ProvidersModule } from '../providers/providers.module.js'
import { DocumentCache } from './document-cache.js'
import { DocumentClient } from './document.client.js'
import { DocumentController } from './document.controller.js'
import { DocumentReception } from './document-reception.js'
import { DocumentService } from './document.service.js'
import { FetchesInFlight } from './fetches-in-flight.js'
import { LocalReader } from './local-reader.js'
import { ParserPoolModule } from './pool/parser-pool.module.js'
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
