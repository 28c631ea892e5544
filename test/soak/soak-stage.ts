import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { isSignedWith } from '@multi-model-gateway/sandbox/tasks/webhooks.js'
import type { VidgenSimulator } from '@multi-model-gateway/sandbox/vidgen/vidgen.simulator.js'
import { KyselyCallbackRepository } from '../../src/tasks/callback.pg.js'
import { KyselyTaskRepository } from '../../src/tasks/task.pg.js'
import { CallbackReceiver } from '../support/callback-lab.js'
import { dataDirectory, startPostgres, testStore } from '../support/stores.js'
import { GatewayFleet, LogWatch } from './gateway-fleet.js'
import {
  CALLBACK_TIMEOUT_MS,
  configurationOf,
  makeSecrets,
  secretsByName,
  SoakCaller,
  type SoakSecrets,
  startUpstream,
} from './soak-caller.js'
import { digestOf, Random, SoakLedger, type StoreCounts, type TaskObject } from './soak-records.js'

/** What becomes of a callback. On some paths nothing ever arrives well, so that events are given up. */
const MOODS = { takes: 62, fails: 15, resets: 10, isSlow: 6, isTooSlow: 5, isGone: 2 } as const
type Mood = keyof typeof MOODS

const PATHS = { hook: 92, dead: 8 } as const
const SLOW_MS = 150

export interface ReceiverOptions {
  readonly ledger: SoakLedger
  readonly random: Random
  readonly secret: string
  /** Of the address, so that it can be looked for in logs. */
  readonly canary: string
  /** What the gateway gives an attempt. */
  readonly timeoutMs: number
  readonly nowMs: () => number
}

/** A receiver that fails a share of its callbacks in all ways there are, and notes each. */
class FailingReceiver {
  isWell = false

  private constructor(
    private readonly receiver: CallbackReceiver,
    private readonly options: ReceiverOptions,
  ) {
    receiver.answer = (response, { path, headers, body }) => {
      // The base class keeps everything; a long run need not.
      receiver.received.length = 0
      const mood = this.mood(path)
      this.note(headers as Record<string, string>, body, mood)
      if (mood === 'takes') response.writeHead(204).end()
      else if (mood === 'fails') response.writeHead(500).end()
      else if (mood === 'isGone') response.writeHead(410).end()
      else if (mood === 'resets') response.socket?.resetAndDestroy()
      else {
        const delayMs = mood === 'isSlow' ? SLOW_MS : options.timeoutMs * 2
        void pause(delayMs, undefined, { ref: false }).then(() => response.writeHead(204).end())
      }
    }
  }

  static async start(options: ReceiverOptions): Promise<FailingReceiver> {
    return new FailingReceiver(await CallbackReceiver.start(), options)
  }

  get host(): string {
    return this.receiver.host
  }

  readonly url = (random: Random): string =>
    this.receiver.url(`/${random.weighted(PATHS)}?token=${this.options.canary}`)

  close(): Promise<void> {
    return this.receiver.close()
  }

  private mood(path: string): Mood {
    if (path.startsWith('/dead')) return 'fails'
    return this.isWell ? 'takes' : this.options.random.weighted(MOODS)
  }

  private note(headers: Record<string, string>, body: string, mood: Mood): void {
    const task = JSON.parse(body) as TaskObject
    this.options.ledger.callbacks.push({
      webhookId: headers['webhook-id'] ?? '',
      taskId: task.task_id,
      status: task.task_status,
      updatedAt: task.updated_at,
      digest: digestOf(task),
      isSigned: isSignedWith(this.options.secret, headers, body, this.options.nowMs()),
      answer: mood === 'takes' || mood === 'isSlow' ? 'taken' : mood === 'isGone' ? 'gone' : 'failed',
    })
  }
}

export const STORES = ['embedded', 'postgres'] as const
type StoreName = (typeof STORES)[number]

/** A store as gateways are configured with it. */
interface SoakStore {
  readonly replicas: number
  readonly variables: Readonly<Record<string, string>>
  /** Counts its rows. Only while no gateway runs: an embedded store is one process's. */
  look(): Promise<StoreCounts>
  close(): Promise<void>
}

/** `password` is in the address of the database, unused: it must not be logged. */
function openSoakStore(name: StoreName, password: string): Promise<SoakStore> {
  return name === 'embedded' ? embeddedStore() : postgresStore(password)
}

async function embeddedStore(): Promise<SoakStore> {
  const directory = await dataDirectory()
  return {
    replicas: 1,
    variables: { GATEWAY_DATA: directory },
    look: () => countsIn({ directory }),
    close: () => rm(directory, { recursive: true, force: true }),
  }
}

async function postgresStore(password: string): Promise<SoakStore> {
  const server = await startPostgres()
  const url = (await server.emptyDatabase()).replace('postgres@', `postgres:${password}@`)
  return {
    replicas: 2,
    variables: { DATABASE_URL: url },
    look: () => countsIn({ url }),
    close: () => server.close(),
  }
}

async function countsIn(at: Parameters<typeof testStore>[0]): Promise<StoreCounts> {
  const store = testStore(at)
  try {
    const states = await new KyselyTaskRepository(store.database).countByState()
    const { waiting, exhausted } = await new KyselyCallbackRepository(store.database).countOpen()
    return { states, waitingEvents: waiting, exhaustedEvents: exhausted }
  } finally {
    await store.close()
  }
}

/** The participants of a run except the workers. */
export interface SoakStage {
  readonly random: Random
  readonly secrets: SoakSecrets
  readonly ledger: SoakLedger
  readonly logWatch: LogWatch
  readonly store: SoakStore
  readonly upstream: VidgenSimulator
  readonly receiver: FailingReceiver
  readonly fleet: GatewayFleet
  readonly caller: SoakCaller
  close(): Promise<void>
}

/** Gateways are ready to be started. The caller must close it, also after an aborted run. */
export async function openStage(storeName: StoreName, seed: number): Promise<SoakStage> {
  const closers: (() => Promise<void>)[] = []
  const close = async (): Promise<void> => {
    for (const closer of closers.splice(0).reverse()) await closer()
  }
  const closedAtLast = <Part extends { close(): Promise<void> }>(part: Part): Part => {
    closers.push(() => part.close())
    return part
  }
  try {
    return { ...(await openParts(storeName, seed, closedAtLast)), close }
  } catch (error) {
    await close()
    throw error
  }
}

async function openParts(
  storeName: StoreName,
  seed: number,
  closedAtLast: <Part extends { close(): Promise<void> }>(part: Part) => Part,
): Promise<Omit<SoakStage, 'close'>> {
  const random = new Random(seed)
  const secrets = makeSecrets()
  const ledger = new SoakLedger()
  const logWatch = new LogWatch(secretsByName(secrets))
  const clock = { aheadMs: 0 }
  const nowMs = (): number => Date.now() + clock.aheadMs
  const store = closedAtLast(await openSoakStore(storeName, secrets.database))
  const upstream = closedAtLast(await startUpstream(secrets.upstream, nowMs))
  const receiver = closedAtLast(
    await FailingReceiver.start({
      ...{ ledger, random: random.fork(), secret: secrets.callbacks, canary: secrets.receiver },
      ...{ timeoutMs: CALLBACK_TIMEOUT_MS, nowMs },
    }),
  )
  const fleet = closedAtLast(
    await GatewayFleet.prepare({
      ...{ replicas: store.replicas, variables: store.variables, logWatch, random: random.fork(), clock },
      directory: await mkdtemp(join(tmpdir(), 'gateway-soak-')),
      configuration: configurationOf(secrets, upstream.url, receiver.host),
    }),
  )
  const caller = closedAtLast(new SoakCaller(fleet))
  return { random, secrets, ledger, logWatch, store, upstream, receiver, fleet, caller }
}
