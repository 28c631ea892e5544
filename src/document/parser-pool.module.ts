import { Module } from '@nestjs/common'
import { ParserPool, ParserPoolMetrics } from './parser-pool.js'
import { ENGINE_ENTRY, ENGINE_ENTRY_PATH } from './parser-process.js'
import { DocumentParser } from './parser.js'

/** Reads documents in processes of their own, behind the one token capabilities know: `DocumentParser`. */
@Module({
  providers: [
    { provide: ENGINE_ENTRY, useValue: ENGINE_ENTRY_PATH },
    ParserPool,
    ParserPoolMetrics,
    { provide: DocumentParser, useExisting: ParserPool },
  ],
  exports: [DocumentParser],
})
export class ParserPoolModule {}
