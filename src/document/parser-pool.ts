import type { EngineReplyHead } from '@multi-model-gateway/document-engine/protocol.js'
import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { FairShare } from '../core/fair-share.js'
import { clientDisconnected } from '../core/request-context.js'
import { MAXIMUM_TIMER_MS } from '../core/time.js'
import type { Logger } from '../observability/logger.js'
import { byLabel, Metrics, registerCounter, registerGauge } from '../observability/metrics.js'
import { LOGGER } from '../observability/observability.module.js'
import { FetchesInFlight } from './document-fetch.js'
import { contentBytes } from './document-upload.js'
import { missingConfinement } from './parser-confinement.js'
import { ParserFleet } from './parser-fleet.js'
import { PARSER_PROGRAM, type ParserJob, type ParserProcess, type ParserProgram, readOn } from './parser-process.js'
import {
  type DocumentFile,
  documentOf,
  DocumentParser,
  errorFromExit,
  parseTimedOut,
  type ParsedDocument,
  type ParseOptions,
  EngineEnded,
  queueFull,
  parserStopping,
} from './parser.js'

/** One retry: where a second process ends as well, the document is the likely cause. */
const MAXIMUM_ATTEMPTS = 2

interface Waiter<Grant> {
  readonly grant: (value: Grant) => void
  readonly refuse: (error: Error) => void
}

/** Requests that wait: callers go round, each one's in order. A request that is aborted or reaches its deadline leaves. */
class WaitingQueue<Grant> {
  /** By caller, the one whose turn is next first; no caller without a waiter. */
  private readonly waiters = new Map<string, Set<Waiter<Grant>>>()
  private count = 0

  get length(): number {
    return this.count
  }

  /** Resolves with what is granted; rejects with `caller_left`, `upstream_timeout` or the reason of a refusal. */
  wait({ disconnect, deadlineAtMs, sharer: { keyId, member = '' } }: ParseOptions): Promise<Grant> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter<Grant> = {
        grant: (value) => {
          leave()
          resolve(value)
        },
        refuse: (error) => {
          leave()
          reject(error)
        },
      }
      const caller = `${keyId} ${member}`
      const leave = (): void => {
        this.remove(caller, waiter)
        clearTimeout(timer)
        unsubscribe()
      }
      this.add(caller, waiter)
      const remainingMs = Math.min(Math.max(deadlineAtMs - performance.now(), 0), MAXIMUM_TIMER_MS)
      const timer = setTimeout(() => {
        waiter.refuse(parseTimedOut())
      }, remainingMs)
      let unsubscribe = (): void => undefined
      unsubscribe = disconnect.onAbort(() => {
        waiter.refuse(clientDisconnected())
      })
    })
  }

  /** Grants to the first waiter of the caller whose turn it is; there must be one. */
  grant(value: Grant): void {
    for (const [caller, waiters] of this.waiters) {
      this.waiters.delete(caller)
      this.waiters.set(caller, waiters)
      const [first] = waiters
      first?.grant(value)
      return
    }
  }

  refuseAll(error: () => Error): void {
    for (const waiters of this.waiters.values()) for (const waiter of waiters) waiter.refuse(error())
  }

  private add(caller: string, waiter: Waiter<Grant>): void {
    const waiters = this.waiters.get(caller)
    if (waiters === undefined) this.waiters.set(caller, new Set([waiter]))
    else waiters.add(waiter)
    this.count += 1
  }

  private remove(caller: string, waiter: Waiter<Grant>): void {
    const waiters = this.waiters.get(caller)
    if (waiters?.delete(waiter) !== true) return
    this.count -= 1
    if (waiters.size === 0) this.waiters.delete(caller)
  }
}

/**
 * Parses documents in separate processes, so that a harmful document affects no other traffic.
 * The first document starts the first process; from then on they are kept warm.
 */
@Injectable()
export class ParserPool extends DocumentParser implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly fleet: ParserFleet
  private readonly queue = new WaitingQueue<ParserProcess>()
  private readonly unsubscribe: () => void
  readonly places: FairShare
  private running = 0
  private isStopping = false

  constructor(
    private readonly store: ConfigStore,
    @Inject(PARSER_PROGRAM) private readonly program: ParserProgram,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    super()
    this.places = new FairShare(() => {
      const { documents, admission } = store.current
      return { total: documents.processes + documents.queue, callerShare: admission.callerShare }
    })
    this.fleet = new ParserFleet(
      program,
      () => store.current.documents,
      logger,
      () => {
        this.serve()
      },
    )
    this.unsubscribe = store.onChange(() => {
      this.fleet.adapt()
    })
  }

  /** Documents being parsed, and waiting for a process. */
  get load(): { readonly reading: number; readonly waiting: number } {
    return { reading: this.running, waiting: this.queue.length }
  }

  async parse(file: DocumentFile, options: ParseOptions): Promise<ParsedDocument> {
    if (!this.places.take(options.sharer)) throw queueFull()
    try {
      return await this.parseTwice(file, options)
    } finally {
      this.places.count(options.sharer, -1)
    }
  }

  private async parseTwice(file: DocumentFile, options: ParseOptions): Promise<ParsedDocument> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.parseOnce(file, options)
      } catch (error) {
        if (!(error instanceof EngineEnded)) throw error
        if (attempt === MAXIMUM_ATTEMPTS) throw errorFromExit(error)
      }
    }
  }

  /** Says at start what the host does not give: a document that broke the engine could do it. */
  onApplicationBootstrap(): void {
    const missing = missingConfinement(this.program.confinement)
    if (missing.length > 0) this.logger.info({ missing }, 'processes that read documents are not wholly confined')
  }

  /** Called after all requests have ended: documents still being read have no waiting request. */
  async onApplicationShutdown(): Promise<void> {
    this.isStopping = true
    this.unsubscribe()
    this.queue.refuseAll(parserStopping)
    await this.fleet.stop()
  }

  private serve(): void {
    while (this.queue.length > 0) {
      const engine = this.fleet.take()
      if (engine === undefined) break
      this.running += 1
      this.queue.grant(engine)
    }
    this.fleet.grow(this.queue.length)
    // Waiting is pointless while no process can be started.
    if (this.fleet.isEmpty) this.queue.refuseAll(() => queueFull(this.fleet.restSeconds))
  }

  /** Rejects as `readOn` does. */
  private async parseOnce(file: DocumentFile, options: ParseOptions): Promise<ParsedDocument> {
    if (this.isStopping) throw parserStopping()
    const granted = this.queue.wait(options)
    this.serve()
    return this.readWith(await granted, file, options)
  }

  private async readWith(engine: ParserProcess, file: DocumentFile, options: ParseOptions): Promise<ParsedDocument> {
    let rssBytes: number | undefined
    try {
      const { parseMs } = this.store.current.documents
      const frame = await readOn(engine, this.jobOf(file), { ...options, parseMs })
      rssBytes = (frame.head as EngineReplyHead).rssBytes
      return documentOf(frame)
    } finally {
      this.running -= 1
      this.fleet.giveBack(engine, rssBytes)
    }
  }

  private jobOf({ spool, contentType, name, baseUrl }: DocumentFile): ParserJob {
    const { documents, limits } = this.store.current
    const engineLimits = { pages: documents.pages, decodedBytes: limits.documentBytes }
    return {
      head: { contentType, name, baseUrl, limits: engineLimits, contentBytes: contentBytes(limits) },
      bytes: spool.size,
      open: () => spool.createReadStream(),
    }
  }
}

@Injectable()
export class ParserPoolMetrics {
  constructor(pool: ParserPool, fetches: FetchesInFlight, metrics: Metrics) {
    registerCounter(
      metrics,
      {
        name: 'gateway_documents_share_refused_total',
        help: 'Refused although there was room, as the caller held its share.',
        labelNames: ['resource'],
      },
      () => byLabel('resource', { fetches: fetches.places.refused, processes: pool.places.refused }),
    )
    registerGauge(
      metrics,
      { name: 'gateway_documents', help: 'Documents being read or waiting for a process.', labelNames: ['state'] },
      () => byLabel('state', { ...pool.load }),
    )
  }
}
