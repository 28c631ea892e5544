import type { EngineReplyHead } from '@multi-model-gateway/document-engine/engine-protocol.js'
import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { contentBytes } from './content-bytes.js'
import { ENGINE_ENTRY } from './engine-entry.js'
import { EngineEnded } from './engine-exit.js'
import { readOn } from './engine-reading.js'
import { documentOf, errorOfEnd, parserFull, parserStopping } from './parse-outcome.js'
import { EngineFleet } from './parser-fleet.js'
import type { EngineChild, EngineJob } from './parser-process.js'
import { type DocumentFile, DocumentParser, type ParsedDocument, type ParseTerms } from './parser.js'
import { WaitingLine } from './waiting-line.js'

/**
 * Documents are read in processes of their own: whatever a document does to its reader, no other traffic is touched.
 * The first document starts the first process; from then on they are kept warm.
 */
@Injectable()
export class ParserPool extends DocumentParser implements OnApplicationShutdown {
  private readonly fleet: EngineFleet
  private readonly line = new WaitingLine<EngineChild>()
  private readonly forgetConfig: () => void
  private running = 0
  private isStopping = false

  constructor(
    private readonly store: ConfigStore,
    @Inject(ENGINE_ENTRY) entry: string,
    @Inject(LOGGER) logger: Logger,
  ) {
    super()
    this.fleet = new EngineFleet(
      entry,
      () => store.current.documents,
      logger,
      () => {
        this.serve()
      },
    )
    this.forgetConfig = store.onChange(() => {
      this.fleet.adapt()
    })
  }

  /** Documents that are being read, and those that wait for a process. */
  get load(): { readonly reading: number; readonly waiting: number } {
    return { reading: this.running, waiting: this.line.length }
  }

  async parse(file: DocumentFile, terms: ParseTerms): Promise<ParsedDocument> {
    const { processes, queue } = this.store.current.documents
    if (this.running + this.line.length >= processes + queue) throw parserFull()
    try {
      return await this.parseOnce(file, terms)
    } catch (error) {
      if (!(error instanceof EngineEnded)) throw error
      // Another process reads it, but no third: whatever ends them may know of the document all the same.
      return await this.parseOnce(file, terms).catch((again: unknown) => {
        throw again instanceof EngineEnded ? errorOfEnd(again) : again
      })
    }
  }

  /** Requests are over by now; what still runs has nobody who waits for it. */
  async onApplicationShutdown(): Promise<void> {
    this.isStopping = true
    this.forgetConfig()
    this.line.refuseAll(parserStopping)
    await this.fleet.stop()
  }

  private serve(): void {
    while (this.line.length > 0) {
      const engine = this.fleet.take()
      if (engine === undefined) break
      this.running += 1
      this.line.grant(engine)
    }
    this.fleet.grow(this.line.length)
    // Nothing will come of waiting while not one process can be started.
    if (this.fleet.isEmpty) this.line.refuseAll(() => parserFull(this.fleet.restSeconds))
  }

  /** Rejects as `readOn` does. */
  private async parseOnce(file: DocumentFile, terms: ParseTerms): Promise<ParsedDocument> {
    if (this.isStopping) throw parserStopping()
    const granted = this.line.wait(terms)
    this.serve()
    return this.readWith(await granted, file, terms)
  }

  private async readWith(engine: EngineChild, file: DocumentFile, terms: ParseTerms): Promise<ParsedDocument> {
    let rssBytes: number | undefined
    try {
      const { parseMs } = this.store.current.documents
      const frame = await readOn(engine, this.jobOf(file), { ...terms, parseMs })
      rssBytes = (frame.head as EngineReplyHead).rssBytes
      return documentOf(frame)
    } finally {
      this.running -= 1
      this.fleet.giveBack(engine, rssBytes)
    }
  }

  private jobOf({ spool, contentType, name, baseUrl }: DocumentFile): EngineJob {
    const { documents, limits } = this.store.current
    const engineLimits = { pages: documents.pages, decodedBytes: limits.documentBytes }
    return {
      head: { contentType, name, baseUrl, limits: engineLimits, contentBytes: contentBytes(limits) },
      bytes: spool.size,
      open: () => spool.createReadStream(),
    }
  }
}
