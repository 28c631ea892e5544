/** What a run has seen, from every side. Times are `performance.now()` of the process that looks, in milliseconds. */
export interface SoakRecords {
  readonly attempts: readonly CreateAttempt[]
  readonly sightings: readonly Sighting[]
  /** Tasks that were shown to somebody else, in words. */
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
  /** What went wrong with the processes: secrets in their logs, ends that nobody ordered, failures of their own. */
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
  /** By its id, with the key of somebody else. */
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
