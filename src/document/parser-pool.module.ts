import { Module } from '@nestjs/common'
import { ParserPool, ParserPoolMetrics } from './parser-pool.js'
import { PARSER_ENTRY, PARSER_ENTRY_PATH } from './parser-process.js'
import { DocumentParser } from './parser.js'

/** Reads documents in processes of their own, behind the one token capabilities know: `DocumentParser`. */
@Module({
  providers: [
    { provide: PARSER_ENTRY, useValue: PARSER_ENTRY_PATH },
    ParserPool,
    ParserPoolMetrics,
    { provide: DocumentParser, useExisting: ParserPool },
  ],
  exports: [DocumentParser],
})
export class ParserPoolModule {}
