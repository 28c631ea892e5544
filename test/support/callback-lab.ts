import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { ConfigStore } from '../../src/config/config-store.js'
import { createLogging } from '../../src/observability/logger.js'
import { Database } from '../../src/storage/database.js'
import { CallbackSender } from '../../src/tasks/callback-sender.js'
import { CallbackAttempt } from '../../src/tasks/callback-attempt.js'
import type { CallbackClaim, CallbackDelivery, CallbackOutcome } from '../../src/tasks/callback.repository.js'
import { Clock } from '../../src/tasks/background-work.js'
import { SafeFetchClient } from '../../src/upstream/safe-fetch.js'
import type { ResolveHost } from '../../src/upstream/ssrf-guard.js'
import { parseConfig } from './config.js'
import { MemoryCallbackRepository, MemoryStore } from './memory-store.js'

/** An outbox in memory of its own; what a sender does with it can be waited for, and made to fail. */
export class CallbackOutbox extends MemoryCallbackRepository {
  /** Each call takes the first of these, and rejects with it. */
  readonly claimFailures: Error[] = []
  readonly settleFailures: Error[] = []
  claims = 0
  private readonly rows: MemoryStore['deliveries']
  private readonly events = new EventEmitter()

  constructor() {
    const store = new MemoryStore()
    super(store)
    this.rows = store.deliveries
  }

  add(row: Pick<CallbackDelivery, 'webhookId' | 'url'> & Partial<CallbackDelivery>): void {
    const delivery = {
      taskId: `task of ${row.webhookId}`,
      ownerId: 'owner',
      body: `{"task_id":"${row.webhookId}"}`,
      attempts: 0,
      createdAtMs: 0,
      nextAttemptAtMs: 0,
      ...row,
    }
    this.rows.set(row.webhookId, { delivery, lockedUntilMs: 0 })
  }

  row(webhookId: string): CallbackDelivery {
    const row = this.rows.get(webhookId)
    if (row === undefined) throw new Error(`no delivery ${webhookId}`)
    return row.delivery
  }

  /** Resolves once the condition holds after an attempt was recorded, or failed to be. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await once(this.events, 'settled')
  }

  /** Resolves at the next claim. */
  async claimed(): Promise<void> {
    await once(this.events, 'claimed')
  }

  override claimDue(claim: CallbackClaim): Promise<readonly CallbackDelivery[]> {
    this.claims++
    setImmediate(() => this.events.emit('claimed'))
    const failure = this.claimFailures.shift()
    return failure === undefined ? super.claimDue(claim) : Promise.reject(failure)
  }

  override recordOutcome(webhookId: string, outcome: CallbackOutcome): Promise<void> {
    setImmediate(() => this.events.emit('settled'))
    const failure = this.settleFailures.shift()
    return failure === undefined ? super.recordOutcome(webhookId, outcome) : Promise.reject(failure)
  }
}

export interface ReceivedCallback {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export type ReceiverAnswer = (response: ServerResponse, received: ReceivedCallback) => void

/** A caller's own server: keeps what it is sent, and answers as the test says. */
export class CallbackReceiver {
  readonly received: ReceivedCallback[] = []
  /** By default every callback is taken. */
  answer: ReceiverAnswer = (response) => response.writeHead(204).end()
  underWay = 0
  mostUnderWay = 0
  private readonly events = new EventEmitter()
  private readonly server = createServer((request, response) => {
    this.mostUnderWay = Math.max(this.mostUnderWay, ++this.underWay)
    response.once('close', () => this.underWay--)
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => {
      const received = { path: request.url ?? '', headers: request.headers, body: Buffer.concat(pieces).toString() }
      this.received.push(received)
      this.answer(response, received)
      this.events.emit('received')
    })
  })

  /** On a free port unless one is named. */
  static async start(port = 0): Promise<CallbackReceiver> {
    const receiver = new CallbackReceiver()
    receiver.server.listen(port, '127.0.0.1')
    await once(receiver.server, 'listening')
    return receiver
  }

  /** `127.0.0.1:<port>`, as `ssrf.allow` takes it. */
  get host(): string {
    return `127.0.0.1:${(this.server.address() as AddressInfo).port}`
  }

  url(path = '/hook'): string {
    return `http://${this.host}${path}`
  }

  /** The `webhook-id` of everything received so far. */
  get webhookIds(): unknown[] {
    return this.received.map(({ headers }) => headers['webhook-id'])
  }

  /** Resolves once so many callbacks have come. */
  async has(count: number): Promise<void> {
    while (this.received.length < count) await once(this.events, 'received')
  }

  async close(): Promise<void> {
    const closed = once(this.server, 'close')
    this.server.close()
    this.server.closeAllConnections()
    await closed
  }
}

export const CALLBACK_SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

/** Begins at the real time, as receivers compare timestamps with theirs, and advances on request. */
class TestClock extends Clock {
  private aheadMs = 0

  nowMs(): number {
    return Date.now() + this.aheadMs
  }

  advance(byMs: number): void {
    this.aheadMs += byMs
  }
}

/** A store that opens on request; senders use nothing else of it. */
class OpeningDatabase extends Database {
  private readonly listeners: (() => void)[] = []

  run = (): Promise<never> => Promise.reject(new Error('senders know repositories only'))
  transaction = this.run

  open(): Promise<void> {
    for (const listener of this.listeners.splice(0)) listener()
    return Promise.resolve()
  }

  whenOpen(listener: () => void): void {
    this.listeners.push(listener)
  }
}

/** A process that sends callbacks. */
export interface TestSender {
  readonly sender: CallbackSender
  readonly stop: () => Promise<void>
}

/** Receivers, an outbox, and senders that share them as replicas do. */
export class CallbackLab {
  readonly clock = new TestClock()
  readonly outbox = new CallbackOutbox()
  logText = ''
  /** What names other than the receivers' resolve to. */
  resolve: ResolveHost = () => Promise.resolve([{ address: '127.0.0.1', family: 4 }])
  /** Laid over the section `callbacks` at the next reload. */
  callbacks: object
  private readonly exempted: string[]
  private readonly store: ConfigStore
  private readonly senders: TestSender[] = []
  private readonly logging = createLogging('info', { write: (line) => (this.logText += line) })

  private constructor(
    /** Both may be called; no other address of this machine may. */
    readonly receiver: CallbackReceiver,
    readonly other: CallbackReceiver,
    callbacks: object,
  ) {
    this.callbacks = callbacks
    this.exempted = [receiver.host, other.host]
    this.store = new ConfigStore(this.config(), () => Promise.resolve({ config: this.config(), file: '' }))
  }

  static async start(callbacks: object = {}): Promise<CallbackLab> {
    return new CallbackLab(await CallbackReceiver.start(), await CallbackReceiver.start(), callbacks)
  }

  async reload(): Promise<void> {
    await this.store.reload()
  }

  /** Lets one more server be called, from the next reload on. */
  exempt(host: string): void {
    this.exempted.push(host)
  }

  /** A replica of its own, at work. */
  async startSender(): Promise<TestSender> {
    const started = this.newSender()
    started.sender.onModuleInit()
    await started.database.open()
    return started
  }

  /** A replica whose store is not open. */
  newSender(): TestSender & { readonly database: Database } {
    const database = new OpeningDatabase()
    const guarded = new SafeFetchClient(this.store, (host) => this.resolve(host))
    const attempt = new CallbackAttempt(guarded, this.store, this.clock, { areAllowed: false })
    const sender = new CallbackSender(database, this.outbox, attempt, this.store, this.clock, this.logging.logger)
    let stopping: Promise<void> | undefined
    const stop = async (): Promise<void> => {
      await sender.beforeApplicationShutdown()
      await guarded.onApplicationShutdown()
    }
    const started = { sender, database, stop: () => (stopping ??= stop()) }
    this.senders.push(started)
    return started
  }

  /** Adds so many events, `msg_0` and on, and gives their ids. */
  addMany(count: number, url = this.receiver.url()): string[] {
    const ids = Array.from({ length: count }, (_, index) => `msg_${index}`)
    for (const webhookId of ids) this.outbox.add({ webhookId, url })
    return ids
  }

  readonly isDelivered = (webhookId: string): boolean => this.outbox.row(webhookId).deliveredAtMs !== undefined

  /** Lets time pass for every sender. */
  advance(byMs: number): void {
    this.clock.advance(byMs)
    for (const { sender } of this.senders) sender.wake()
  }

  async close(): Promise<void> {
    await Promise.all(this.senders.map((started) => started.stop()))
    await this.receiver.close()
    await this.other.close()
  }

  private config() {
    const callbacks = { secret: CALLBACK_SECRET, ...this.callbacks }
    return parseConfig(JSON.stringify({ ssrf: { allow: this.exempted }, callbacks }), {})
  }
}
