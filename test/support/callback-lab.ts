import { ConfigStore } from '../../src/config/config-store.js'
import { parseConfig } from '../../src/config/load-config.js'
import { createLogging } from '../../src/observability/logger.js'
import { Database } from '../../src/storage/database.js'
import { CallbackSender } from '../../src/tasks/callback-delivery.js'
import { CallbackAttempt } from '../../src/tasks/callback-request.js'
import { Clock } from '../../src/tasks/clock.js'
import { GuardedClient } from '../../src/upstream/safe-fetch.js'
import type { ResolveHost } from '../../src/upstream/ssrf-guard.js'
import { CallbackOutbox } from './callback-outbox.js'
import { CallbackReceiver } from './callback-receiver.js'

export const CALLBACK_SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

/** Begins at the real time, as receivers compare timestamps with theirs, and goes on when told. */
class TestClock extends Clock {
  private aheadMs = 0

  nowMs(): number {
    return Date.now() + this.aheadMs
  }

  advance(byMs: number): void {
    this.aheadMs += byMs
  }
}

/** A store that opens when told; senders ask it for nothing else. */
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
    /** Both may be called; nobody else on this machine may. */
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
    const guarded = new GuardedClient(this.store, (host) => this.resolve(host))
    const attempt = new CallbackAttempt(guarded, this.store, this.clock)
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
