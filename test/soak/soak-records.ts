import { createHash } from 'node:crypto'

/** Drawn from a seed, so that a run that found something can be repeated as far as timing allows (mulberry32). */
export class Random {
  constructor(private state: number) {}

  /** Uniform in [0, 1). */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.state ^ (this.state >>> 15), this.state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  between(low: number, high: number): number {
    return low + this.next() * (high - low)
  }

  pick<Item>(items: readonly Item[]): Item | undefined {
    return items[Math.floor(this.next() * items.length)]
  }

  /** One of the names, as often as its weight says. */
  weighted<Name extends string>(weights: Readonly<Record<Name, number>>): Name {
    const entries = Object.entries(weights) as [Name, number][]
    let left = this.next() * entries.reduce((sum, [, weight]) => sum + weight, 0)
    for (const [name, weight] of entries) {
      left -= weight
      if (left < 0) return name
    }
    return (entries[0] as [Name, number])[0]
  }

  /** A separate generator for a concurrent user of random numbers. */
  fork(): Random {
    return new Random(Math.floor(this.next() * 2 ** 32))
  }
}

/** What a run has seen, from every side. Times are `performance.now()` of the process that looks, in milliseconds. */
export interface SoakRecords {
  readonly attempts: readonly CreateAttempt[]
  readonly sightings: readonly Sighting[]
  /** Tasks that were shown to another owner, in words. */
  readonly trespasses: readonly string[]
  readonly callbacks: readonly ReceivedCallback[]
  readonly upstream: readonly UpstreamCreate[]
  /** External ids that reached the upstream a second time. */
  readonly upstreamDuplicates: readonly string[]
  /** By owner, every id in the lists of both kinds at the end, as often as it was listed. */
  readonly lists: ReadonlyMap<string, readonly string[]>
  /** Every task that is listed to anyone, or was promised to its owner, as it can be read at the end. */
  readonly audited: readonly AuditedTask[]
  readonly store: StoreCounts
  /** What went wrong with the processes: secrets in their logs, unexpected exits, internal errors. */
  readonly processFaults: readonly string[]
  /** Attempts that an event has before it is given up. */
  readonly callbackAttempts: number
}

export type TaskStatus = 'submitted' | 'processing' | 'succeed' | 'failed'

/** One request for a task. Repeats under one idempotency key are attempts of their own that share the rest. */
export interface CreateAttempt {
  readonly owner: string
  /** In the prompt: what the upstream's task is recognised by. */
  readonly marker: string
  readonly externalId?: string
  readonly idempotencyKey?: string
  readonly wantsCallbacks: boolean
  /** `unclear`: no answer, or one that says nothing about whether there is a task. */
  readonly outcome: 'acknowledged' | 'refused' | 'unclear'
  readonly taskId?: string
}

/** A task as it was shown to its owner once. */
export interface Sighting {
  readonly taskId: string
  readonly status: TaskStatus
  readonly startedAtMs: number
  readonly endedAtMs: number
  /** Of the whole object. */
  readonly digest: string
}

/** One attempt to deliver an event, as its receiver saw it. */
export interface ReceivedCallback {
  readonly webhookId: string
  readonly taskId: string
  readonly status: TaskStatus
  /** The object's own `updated_at`. */
  readonly updatedAt: number
  readonly digest: string
  readonly isSigned: boolean
  /** `taken`: with 2xx, in time. `gone`: with 410. */
  readonly answer: 'taken' | 'gone' | 'failed'
}

/** A task that the upstream made, and would want to be paid for. */
export interface UpstreamCreate {
  readonly taskId: string
  readonly owner: string
  readonly marker: string
  /** As the upstream knows it: unique for the whole gateway. */
  readonly upstreamExternalId: string
  /** The caller's own. */
  readonly externalId?: string
}

/** The answer to one question for a task. */
export interface Reading {
  readonly httpStatus: number
  readonly taskId?: string
}

export interface AuditedTask {
  readonly owner: string
  readonly taskId: string
  readonly externalId?: string
  readonly status?: TaskStatus
  readonly byId: Reading
  readonly byExternalId?: Reading
  /** By its id, with another owner's key. */
  readonly byOther: Reading
  /** By its external id, with that key: nothing, or a task of that owner's own. */
  readonly byOthersExternalId?: Reading
  readonly deliveries: readonly Delivery[]
}

/** An event as the gateway shows it to the task's owner. */
export interface Delivery {
  readonly webhookId: string
  readonly attempts: number
  readonly isDelivered: boolean
  readonly isExhausted: boolean
}

export interface StoreCounts {
  /** Rows by state. */
  readonly states: Readonly<Record<string, number>>
  /** Events that are neither delivered nor given up. */
  readonly waitingEvents: number
  readonly exhaustedEvents: number
}

export const isEnd = (status: TaskStatus | undefined): boolean => status === 'succeed' || status === 'failed'

/** Items by what a function says of them, in their order. */
export function grouped<Item>(
  items: readonly Item[],
  keyOf: (item: Item) => string | undefined,
): ReadonlyMap<string, readonly Item[]> {
  const groups = new Map<string, Item[]>()
  for (const item of items) {
    const key = keyOf(item)
    if (key === undefined) continue
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [item])
    else group.push(item)
  }
  return groups
}

export const distinct = <Item>(items: readonly Item[]): readonly Item[] => [...new Set(items)]

// One task: ordered twice under one external id, created once, polled until its end, and delivered.
export const attempt: CreateAttempt = {
  owner: 'anna',
  marker: 'm-1',
  externalId: 'order-1',
  idempotencyKey: 'key-1',
  wantsCallbacks: true,
  outcome: 'acknowledged',
  taskId: '831',
}
export const made: UpstreamCreate = {
  taskId: '831',
  owner: 'anna',
  marker: 'm-1',
  upstreamExternalId: 'aaaa.order-1',
  externalId: 'order-1',
}
export const seen = (
  status: Sighting['status'],
  startedAtMs: number,
  endedAtMs: number,
  digest = status,
): Sighting => ({
  ...{ taskId: '831', status, startedAtMs, endedAtMs, digest },
})
export const told: ReceivedCallback = {
  ...{ webhookId: 'msg_2', taskId: '831', status: 'succeed', updatedAt: 20, digest: 'succeed' },
  ...{ isSigned: true, answer: 'taken' },
}
export const toldBefore: ReceivedCallback = {
  ...{ ...told, webhookId: 'msg_1', status: 'processing', updatedAt: 10, digest: 'processing' },
}
export const delivered = { webhookId: 'msg_2', attempts: 1, isDelivered: true, isExhausted: false }
export const deliveredBefore = { ...delivered, webhookId: 'msg_1' }
export const audited: AuditedTask = {
  ...{ owner: 'anna', taskId: '831', externalId: 'order-1', status: 'succeed' },
  byId: { httpStatus: 200, taskId: '831' },
  byExternalId: { httpStatus: 200, taskId: '831' },
  byOther: { httpStatus: 404 },
  deliveries: [deliveredBefore, delivered],
}

/** A small run in which everything went well, but for what a test changes. */
export const run = (changes: Partial<SoakRecords> = {}): SoakRecords => ({
  attempts: [{ ...attempt, outcome: 'unclear' }, attempt],
  sightings: [seen('submitted', 0, 5), seen('processing', 4, 8), seen('submitted', 4, 9), seen('succeed', 10, 12)],
  trespasses: [],
  callbacks: [{ ...toldBefore, answer: 'failed' }, told, toldBefore],
  upstream: [made],
  upstreamDuplicates: [],
  lists: new Map([
    ['anna', ['831']],
    ['bert', []],
  ]),
  audited: [audited],
  store: { states: { succeed: 1 }, waitingEvents: 0, exhaustedEvents: 0 },
  processFaults: [],
  callbackAttempts: 4,
  ...changes,
})

export const withDelivery = (change: object): Partial<SoakRecords> => ({
  audited: [{ ...audited, deliveries: [deliveredBefore, { ...delivered, ...change }] }],
})

/** A task object as it is on the wire. */
export interface TaskObject {
  readonly task_id: string
  readonly task_status: TaskStatus
  readonly task_info?: { readonly external_task_id?: string }
  readonly updated_at: number
}

/** What workers and receivers note while a run goes on. */
export class SoakLedger {
  readonly attempts: CreateAttempt[] = []
  readonly sightings: Sighting[] = []
  readonly trespasses: string[] = []
  readonly callbacks: ReceivedCallback[] = []
  reads = 0
  lists = 0

  /** Notes that a task was shown. */
  sight(task: TaskObject, startedAtMs: number, endedAtMs: number): void {
    const { task_id: taskId, task_status: status } = task
    this.sightings.push({ taskId, status, startedAtMs, endedAtMs, digest: digestOf(task) })
  }
}

/** Of an object, whatever wraps it. */
export const digestOf = (object: unknown): string =>
  createHash('sha256').update(JSON.stringify(object)).digest('base64url')

/**
 * Hands out its items in turn: one to the first who asks and then one to every so many, so that even the shortest run has
 * one, and each item comes as often as any other whatever else is drawn.
 */
export class Turns<Item> {
  private asked = 0

  constructor(
    private readonly items: readonly Item[],
    private readonly every: number,
  ) {}

  /** Undefined: not this time. */
  next(): Item | undefined {
    const turn = this.asked++
    return turn % this.every === 0 ? this.items[(turn / this.every) % this.items.length] : undefined
  }
}
