import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { type Answer, type Kind, KINDS, type Owner, type SoakCaller, taskIn, tasksIn } from './soak-caller.js'
import type { CreateAttempt, Random, SoakLedger } from './soak-records.js'

/** What stands before the marker in a prompt; most creates have none. The simulator's words. */
const PROMPT_WORDS = {
  '': 64,
  '#fail': 6,
  '#lost': 6,
  '#lost5000': 4,
  '#cut': 3,
  '#cleancut': 2,
  '#stall': 1,
  '#reset': 3,
  '#hang': 1,
  '#slow': 2,
  '#5000': 3,
  '#html': 2,
  '#1303': 2,
  '#1301': 1,
} as const

/** A create as it is sent, as often as it is. */
interface Order extends Omit<CreateAttempt, 'owner' | 'outcome' | 'taskId'> {
  readonly owner: Owner
  readonly kind: Kind
  readonly body: string
}

/** What a create shall be; the rest is drawn. */
interface OrderWish {
  readonly owner?: Owner
  readonly externalId?: string
  readonly idempotencyKey?: string
  readonly wantsCallbacks?: boolean
}

/** Addresses of receivers. */
type CallbackUrls = (random: Random) => string

function orderOf(wish: OrderWish & { readonly owner: Owner }, callbackUrl: CallbackUrls, random: Random): Order {
  const { externalId } = wish
  const kind = random.pick(KINDS) ?? 'text2video'
  const marker = `m-${randomUUID()}`
  const wantsCallbacks = wish.wantsCallbacks ?? random.chance(0.5)
  const body = JSON.stringify({
    prompt: `${random.weighted(PROMPT_WORDS)} ${marker}`.trim(),
    // An upstream would fetch it; the simulator does not.
    ...(kind === 'text2video' ? {} : { image_list: [{ image: 'https://images.example.com/one.png' }] }),
    ...(externalId === undefined ? {} : { external_task_id: externalId }),
    ...(wantsCallbacks ? { callback_url: callbackUrl(random) } : {}),
  })
  return { ...wish, kind, marker, wantsCallbacks, body }
}

const STEPS = { create: 30, rivals: 4, twins: 4, deserted: 2, read: 42, readAnothers: 6, list: 12 } as const

const RIVALS = 4
const MOST_REPEATS = 5
const REPEAT_AFTER_MS = 400
const LONGEST_STAY_MS = 60
const PAGE_SIZE = 50
/** A definite refusal: what it answers made no task. A running create (409) and a timeout (408) say nothing. */
const isRefusal = (status: number): boolean => status >= 400 && status < 500 && status !== 408 && status !== 409

export interface SoakWorld {
  readonly caller: SoakCaller
  readonly ledger: SoakLedger
  readonly owners: readonly Owner[]
  readonly callbackUrl: CallbackUrls
  /** Tasks that are known to exist, by owner. */
  readonly tasks: ReadonlyMap<string, KnownTask[]>
}

export interface KnownTask {
  readonly kind: Kind
  readonly id: string
  readonly externalId?: string
}

/** Creates, reads and lists as one of the owners until it is stopped. */
export class SoakWorker {
  /** Creates under a key whose outcome it never learnt. */
  private readonly unclear: Order[] = []

  constructor(
    private readonly world: SoakWorld,
    private readonly owner: Owner,
    private readonly random: Random,
  ) {}

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) await this.step()
  }

  /** Once more: by now each of them has an answer, unless its prompt lets it fail again. */
  async repeatUnclear(): Promise<void> {
    for (const order of this.unclear.splice(0)) await this.send(order)
  }

  /** Sends a create and notes what its caller learns. */
  private async send(order: Order, signal?: AbortSignal): Promise<CreateAttempt['outcome']> {
    const { caller, ledger, tasks } = this.world
    const { owner, kind, body, ...attempt } = order
    const { idempotencyKey, externalId } = attempt
    const keyed = idempotencyKey === undefined ? {} : { idempotencyKey }
    const question = { owner, path: kind, body, ...keyed, ...(signal === undefined ? {} : { signal }) }
    const answer = await caller.ask(question, this.random)
    const task = answer && taskIn(answer)
    if (answer === undefined || task === undefined) {
      const outcome = answer !== undefined && isRefusal(answer.status) ? 'refused' : 'unclear'
      ledger.attempts.push({ ...attempt, owner: owner.id, outcome })
      return outcome
    }
    ledger.attempts.push({ ...attempt, owner: owner.id, outcome: 'acknowledged', taskId: task.task_id })
    tasks.get(owner.id)?.push({ kind, id: task.task_id, ...(externalId === undefined ? {} : { externalId }) })
    // A repeated answer shows the task as it was.
    if (!answer.isReplay) ledger.sight(task, answer.startedAtMs, answer.endedAtMs)
    return 'acknowledged'
  }

  private async step(): Promise<void> {
    switch (this.random.weighted(STEPS)) {
      case 'create':
        return this.create()
      case 'rivals':
        return this.createAtOnce()
      case 'twins':
        return this.createTwice()
      case 'deserted':
        return this.createAndLeave()
      case 'read':
        return this.read()
      case 'readAnothers':
        return this.readAnothers()
      case 'list':
        return this.list()
    }
  }

  private async create(): Promise<void> {
    const isKeyed = this.random.chance(0.4)
    const order = this.order({
      ...(this.random.chance(0.6) ? { externalId: `order-${randomUUID()}` } : {}),
      ...(isKeyed ? { idempotencyKey: randomUUID() } : {}),
    })
    let outcome = await this.send(order)
    for (let left = MOST_REPEATS; isKeyed && outcome === 'unclear' && left > 0; left -= 1) {
      await pause(REPEAT_AFTER_MS)
      outcome = await this.send(order)
    }
    if (isKeyed && outcome === 'unclear') this.unclear.push(order)
  }

  /** Several creates at once that want the same external id, of this owner and of another one. */
  private async createAtOnce(): Promise<void> {
    const externalId = `shared-${randomUUID()}`
    const wantsCallbacks = this.random.chance(0.5)
    const orders = Array.from({ length: RIVALS }, () => this.order({ externalId, wantsCallbacks }))
    const other = this.random.pick(this.world.owners.filter((owner) => owner !== this.owner)) ?? this.owner
    const others = this.order({ externalId, wantsCallbacks, owner: other })
    await Promise.all([...orders, others].map((order) => this.send(order)))
  }

  /** One create, sent twice at the same moment under one key. */
  private async createTwice(): Promise<void> {
    const order = this.order({ idempotencyKey: randomUUID() })
    const outcomes = await Promise.all([this.send(order), this.send(order)])
    if (!outcomes.includes('acknowledged')) this.unclear.push(order)
  }

  /** The caller is gone before the answer is there. */
  private async createAndLeave(): Promise<void> {
    const order = this.order({ externalId: `left-${randomUUID()}` })
    await this.send(order, AbortSignal.timeout(Math.ceil(this.random.between(0, LONGEST_STAY_MS))))
  }

  private async read(): Promise<void> {
    const { caller, ledger, tasks } = this.world
    const task = this.oneOf(tasks.get(this.owner.id) ?? [])
    if (task === undefined) return this.create()
    const { kind, id, externalId } = task
    const asked = externalId !== undefined && this.random.chance(0.3) ? externalId : id
    const answer = await caller.ask({ owner: this.owner, path: `${kind}/${asked}` }, this.random)
    ledger.reads += 1
    const found = answer && taskIn(answer)
    if (answer === undefined || answer.status >= 500) return
    if (found?.task_id === id) ledger.sight(found, answer.startedAtMs, answer.endedAtMs)
    else ledger.trespasses.push(`task ${id} of ${this.owner.id} was not shown as ${asked} (status ${answer.status})`)
  }

  private async readAnothers(): Promise<void> {
    const { caller, ledger, owners, tasks } = this.world
    const other = this.random.pick(owners.filter((owner) => owner !== this.owner))
    const task = this.oneOf(tasks.get(other?.id ?? '') ?? [])
    if (task === undefined) return
    const answer = await caller.ask({ owner: this.owner, path: `${task.kind}/${task.id}` }, this.random)
    ledger.reads += 1
    if (answer !== undefined && isShown(answer)) {
      ledger.trespasses.push(`task ${task.id} of ${other?.id ?? ''} was shown to ${this.owner.id}`)
    }
  }

  private async list(): Promise<void> {
    const { caller, ledger } = this.world
    const kind = this.random.pick(KINDS) ?? 'text2video'
    const page = 1 + Math.floor(this.random.next() * 3)
    const path = `${kind}?pageNum=${page}&pageSize=${PAGE_SIZE}`
    const answer = await caller.ask({ owner: this.owner, path }, this.random)
    ledger.lists += 1
    if (answer === undefined) return
    const listed = tasksIn(answer)
    for (const task of listed) ledger.sight(task, answer.startedAtMs, answer.endedAtMs)
    if (new Set(listed.map(({ task_id: id }) => id)).size !== listed.length) {
      ledger.trespasses.push(`a page of ${this.owner.id} holds a task twice`)
    }
  }

  private order(wish: OrderWish): Order {
    return orderOf({ owner: this.owner, ...wish }, this.world.callbackUrl, this.random)
  }

  /** The youngest more often: they still change. */
  private oneOf(tasks: readonly KnownTask[]): KnownTask | undefined {
    return this.random.chance(0.7) ? this.random.pick(tasks.slice(-12)) : this.random.pick(tasks)
  }
}

const isShown = ({ status }: Answer): boolean => status === 200
