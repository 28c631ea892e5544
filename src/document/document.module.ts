import { Module } from '@nestjs/common'
import { AuthModule } from '../auth/auth.module.js'
import { HttpModule } from '../upstream/upstream.module.js'
import { DOCUMENT_PARSE } from './document.endpoint.js'
import { DocumentCache, SharedParses } from './document-cache.js'
import { DocumentClient, FetchesInFlight } from './document-fetch.js'
import { DocumentRequestReader } from './document-upload.js'
import { DocumentController } from './document.controller.js'
import { DocumentService } from './document.service.js'
import { LocalParser } from './local-parser.js'
import { ParserPoolModule } from './parser-pool.module.js'

/** Documents as Markdown (specification: Document parse result). */
@Module({
  imports: [AuthModule, HttpModule, ParserPoolModule],
  controllers: [DocumentController],
  providers: [
    ...[DocumentService, DocumentRequestReader, DocumentClient, DocumentCache],
    ...[FetchesInFlight, LocalParser, SharedParses],
  ],
})
export class DocumentModule {
  static readonly endpoints = [DOCUMENT_PARSE]
}
