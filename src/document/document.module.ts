import { Module } from '@nestjs/common'
import { AuthModule } from '../auth/auth.module.js'
import { HttpModule } from '../upstream/upstream.module.js'
import { DOCUMENT_PARSE } from './document.endpoint.js'
import { DocumentCache, SharedParses } from './document-cache.js'
import { DocumentClient, FetchesInFlight } from './document-fetch.js'
import { DocumentRequestReader } from './document-upload.js'
import { DocumentController } from './document.controller.js'
import { DocumentService, LocalParser } from './document.service.js'
import { confinement } from './parser-confinement.js'
import { DocumentParser } from './parser.js'
import { ParserPool, ParserPoolMetrics } from './parser-pool.js'
import { PARSER_ENTRY_PATH, PARSER_PROGRAM, type ParserProgram } from './parser-process.js'

/** Documents as Markdown (specification: Document parse result). */
@Module({
  imports: [AuthModule, HttpModule],
  controllers: [DocumentController],
  providers: [
    ...[DocumentService, DocumentRequestReader, DocumentClient, DocumentCache],
    ...[FetchesInFlight, LocalParser, SharedParses, ParserPool, ParserPoolMetrics],
    {
      provide: PARSER_PROGRAM,
      useFactory: (): ParserProgram => ({ entry: PARSER_ENTRY_PATH, confinement: confinement() }),
    },
    { provide: DocumentParser, useExisting: ParserPool },
  ],
})
export class DocumentModule {
  static readonly endpoints = [DOCUMENT_PARSE]
}
