import { Module } from '@nestjs/common'
import { ENGINE_ENTRY, ENGINE_ENTRY_PATH } from './engine-entry.js'
import { ParserPoolMetrics } from './parser-pool-metrics.js'
import { ParserPool } from './parser-pool.js'
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
