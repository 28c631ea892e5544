import {
  type AuditedTask,
  type CreateAttempt,
  distinct,
  grouped,
  isEnd,
  type Reading,
  type ReceivedCallback,
  type Sighting,
  type SoakRecords,
  type TaskStatus,
} from './soak-records.js'

/** Every event has one id and one body, is delivered or visibly given up, and none is missing, above all not the last. */
function callbackFaults(records: SoakRecords): readonly string[] {
  const { callbacks, audited } = records
  const byEvent = grouped(callbacks, ({ webhookId }) => webhookId)
  const byTask = grouped(callbacks, ({ taskId }) => taskId)
  const wanting = tasksWithCallbacks(records)
  return [
    ...callbacks.filter(({ isSigned }) => !isSigned).map(({ webhookId }) => `event ${webhookId} came unsigned`),
    ...[...byEvent].flatMap(([webhookId, repeats]) =>
      distinct(repeats.map(({ digest }) => digest)).length === 1 ? [] : [`event ${webhookId} came with several bodies`],
    ),
    ...[...byTask].flatMap(([taskId, told]) => doubledEvents(taskId, told)),
    ...strangers(byEvent, audited),
    ...audited.flatMap(({ deliveries }) =>
      deliveries.flatMap((delivery) => deliveryFaults(delivery, byEvent.get(delivery.webhookId) ?? [], records)),
    ),
    ...audited
      .filter(({ owner, taskId, status }) => isEnd(status) && wanting.has(`${owner} ${taskId}`))
      .filter(({ deliveries }) => !deliveries.some(({ webhookId }) => tellsEnd(byEvent.get(webhookId))))
      .map(({ taskId }) => `the end of task ${taskId} was not delivered`),
  ]
}

const tellsEnd = (repeats: readonly ReceivedCallback[] = []): boolean => repeats.some(({ status }) => isEnd(status))

/** One change of a task is one event: two ids for one state are two events. */
const doubledEvents = (taskId: string, told: readonly ReceivedCallback[]): readonly string[] =>
  [...grouped(told, ({ status }) => (isEnd(status) ? 'end' : status))].flatMap(([change, repeats]) => {
    const ids = distinct(repeats.map(({ webhookId }) => webhookId))
    return ids.length === 1 ? [] : [`task ${taskId} has ${ids.length} events for its ${change}: ${ids.join(', ')}`]
  })

/** What a receiver gets must be shown to the task's owner, under the same task. */
function strangers(
  byEvent: ReadonlyMap<string, readonly ReceivedCallback[]>,
  audited: readonly AuditedTask[],
): readonly string[] {
  const shown = new Set(
    audited.flatMap(({ taskId, deliveries }) => deliveries.map(({ webhookId }) => `${webhookId} ${taskId}`)),
  )
  return [...byEvent].flatMap(([webhookId, [first]]) =>
    first === undefined || shown.has(`${webhookId} ${first.taskId}`)
      ? []
      : [`event ${webhookId} is not among those of task ${first.taskId}`],
  )
}

function deliveryFaults(
  { webhookId, attempts, isDelivered, isExhausted }: AuditedTask['deliveries'][number],
  received: readonly ReceivedCallback[],
  { callbackAttempts }: SoakRecords,
): readonly string[] {
  if (isDelivered === isExhausted) return [`event ${webhookId} is neither delivered nor given up, or both`]
  if (isDelivered) {
    return received.some(({ answer }) => answer === 'taken')
      ? []
      : [`event ${webhookId} is not delivered, but shown so`]
  }
  const isOver = attempts >= callbackAttempts || received.some(({ answer }) => answer === 'gone')
  return isOver ? [] : [`event ${webhookId} was given up after ${attempts} attempts`]
}

/** Tasks whose creates named an address, by owner and id: known from their answer, or by what they are called upstream. */
function tasksWithCallbacks({ attempts, upstream, audited }: SoakRecords): ReadonlySet<string> {
  const wanting = attempts.filter(({ wantsCallbacks }) => wantsCallbacks)
  const markers = new Set(wanting.map(({ marker }) => marker))
  const externalIds = new Set(wanting.flatMap(externalIdsOf))
  return new Set([
    ...wanting.flatMap(({ owner, taskId }) => (taskId === undefined ? [] : [`${owner} ${taskId}`])),
    ...upstream.filter(({ marker }) => markers.has(marker)).map(({ owner, taskId }) => `${owner} ${taskId}`),
    ...audited
      .filter(({ owner, externalId }) => externalId !== undefined && externalIds.has(`${owner} ${externalId}`))
      .map(({ owner, taskId }) => `${owner} ${taskId}`),
  ])
}

const externalIdsOf = ({ owner, externalId }: CreateAttempt): readonly string[] =>
  externalId === undefined ? [] : [`${owner} ${externalId}`]

/** At most one task per create, per external id of a caller and per idempotency key; none for what was refused. */
function createFaults({ attempts, upstream, upstreamDuplicates }: SoakRecords): readonly string[] {
  const made = grouped(upstream, ({ marker }) => marker)
  const refused = [...grouped(attempts, ({ marker }) => marker)].filter(([, repeats]) =>
    repeats.every(({ outcome }) => outcome === 'refused'),
  )
  return [
    ...upstreamDuplicates.map((id) => `the upstream was asked twice for ${id}`),
    ...severalIn(upstream, 'external id', ({ upstreamExternalId }) => upstreamExternalId),
    ...severalIn(upstream, 'create', ({ marker }) => marker),
    ...refused.flatMap(([marker]) => (made.has(marker) ? [`the refused create ${marker} was made upstream`] : [])),
    ...unknownCreates(attempts, upstream),
    ...severalIn(acknowledgedIn(attempts), 'external id', ({ owner, externalId }) =>
      externalId === undefined ? undefined : `${owner}'s ${externalId}`,
    ),
    ...severalIn(acknowledgedIn(attempts), 'idempotency key', ({ owner, idempotencyKey }) =>
      idempotencyKey === undefined ? undefined : `${owner}'s ${idempotencyKey}`,
    ),
  ]
}

/**
 * What was acknowledged, and what the upstream made, is readable by its owner exactly once, in the list as well as by each
 * of its ids, and by no other owner.
 */
function readingFaults(records: SoakRecords): readonly string[] {
  const { attempts, upstream, audited, trespasses, lists } = records
  const listed = new Map([...lists].map(([owner, ids]) => [owner, timesOf(ids)]))
  const known = new Set(audited.map(({ owner, taskId }) => `${owner} ${taskId}`))
  const promised = distinct([...acknowledgedIn(attempts), ...upstream].map(({ owner, taskId }) => `${owner} ${taskId}`))
  return [
    ...trespasses,
    ...promised.filter((task) => !known.has(task)).map((task) => `the promised task ${task} was not looked up`),
    ...audited.flatMap((task) => faultsOf(task, listed)),
  ]
}

function faultsOf(task: AuditedTask, listed: ReadonlyMap<string, ReadonlyMap<string, number>>): readonly string[] {
  const { owner, taskId, externalId, byId, byExternalId, byOther, byOthersExternalId } = task
  const name = `task ${taskId} of ${owner}`
  const times = listed.get(owner)?.get(taskId) ?? 0
  const elsewhere = [...listed].filter(([other, ids]) => other !== owner && ids.has(taskId))
  const isRead = (reading: Reading | undefined): boolean => reading?.httpStatus === 200 && reading.taskId === taskId
  return [
    ...(times === 1 ? [] : [`${name} is listed ${times} times`]),
    ...elsewhere.map(([other]) => `${name} is listed to ${other}`),
    ...(isRead(byId) ? [] : [`${name} is not found by its id (status ${byId.httpStatus})`]),
    ...(externalId === undefined || isRead(byExternalId)
      ? []
      : [`${name} is not found by its external id ${externalId} (status ${byExternalId?.httpStatus ?? 0})`]),
    ...(byOther.httpStatus === 404 ? [] : [`${name} can be asked for by others (status ${byOther.httpStatus})`]),
    ...(byOthersExternalId?.taskId === taskId ? [`${name} is shown to others by its external id`] : []),
  ]
}

function timesOf(ids: readonly string[]): ReadonlyMap<string, number> {
  const times = new Map<string, number>()
  for (const id of ids) times.set(id, (times.get(id) ?? 0) + 1)
  return times
}

type Acknowledged = CreateAttempt & { readonly taskId: string }

export const acknowledgedIn = (attempts: readonly CreateAttempt[]): readonly Acknowledged[] =>
  attempts.filter((attempt): attempt is Acknowledged => attempt.outcome === 'acknowledged')

/** Groups that hold more than one task. */
const severalIn = <Item extends { readonly taskId: string }>(
  items: readonly Item[],
  what: string,
  keyOf: (item: Item) => string | undefined,
): readonly string[] =>
  [...grouped(items, keyOf)].flatMap(([key, group]) => {
    const tasks = distinct(group.map(({ taskId }) => taskId))
    return tasks.length <= 1 ? [] : [`the ${what} ${key} has ${tasks.length} tasks: ${tasks.join(', ')}`]
  })

/** No task without a create, and every acknowledged task. */
function unknownCreates(attempts: readonly CreateAttempt[], upstream: SoakRecords['upstream']): readonly string[] {
  const asked = new Set(attempts.map(({ owner, marker }) => `${owner} ${marker}`))
  return upstream
    .filter(({ owner, marker }) => !asked.has(`${owner} ${marker}`))
    .map(({ taskId, owner }) => `the upstream made ${taskId} for ${owner}, who did not ask for it`)
}

const RANKS = { submitted: 0, processing: 1, succeed: 2, failed: 2 } as const satisfies Readonly<
  Record<TaskStatus, number>
>

/** States only move forward, for readers and for receivers, and an end is the same for all of them. */
function orderFaults({ sightings, callbacks }: SoakRecords): readonly string[] {
  const ends = [...sightings, ...callbacks].filter(({ status }) => isEnd(status))
  return [
    ...[...grouped(sightings, ({ taskId }) => taskId)].flatMap(([taskId, seen]) => regressions(taskId, seen)),
    ...[...grouped(callbacks, ({ taskId }) => taskId)].flatMap(([taskId, told]) =>
      [...told]
        .sort((one, other) => one.updatedAt - other.updatedAt)
        .flatMap(({ status }, index, sorted) => {
          const before = sorted[index - 1]
          return before !== undefined && RANKS[status] < RANKS[before.status]
            ? [`task ${taskId} is reported as ${status} after ${before.status}, by its own time`]
            : []
        }),
    ),
    ...[...grouped(ends, ({ taskId }) => taskId)].flatMap(([taskId, shown]) =>
      distinct(shown.map(({ digest }) => digest)).length === 1
        ? []
        : [`task ${taskId} has several ends: ${distinct(shown.map(({ status }) => status)).join(', ')}`],
    ),
  ]
}

/** A sighting that began when another one was over must not lie behind it. Those at the same time may go either way. */
function regressions(taskId: string, seen: readonly Sighting[]): readonly string[] {
  const byStart = [...seen].sort((one, other) => one.startedAtMs - other.startedAtMs)
  const byEnd = [...seen].sort((one, other) => one.endedAtMs - other.endedAtMs)
  const faults: string[] = []
  let farthest: TaskStatus | undefined
  let over = 0
  for (const { status, startedAtMs } of byStart) {
    for (let next = byEnd[over]; next !== undefined && next.endedAtMs < startedAtMs; next = byEnd[++over]) {
      if (farthest === undefined || RANKS[next.status] > RANKS[farthest]) farthest = next.status
    }
    if (farthest !== undefined && RANKS[status] < RANKS[farthest]) {
      faults.push(`task ${taskId} is shown as ${status} after ${farthest}`)
    }
  }
  return faults
}

/** Every broken promise, in words; empty when all were kept. */
export const findViolations = (records: SoakRecords): readonly string[] => [
  ...createFaults(records),
  ...readingFaults(records),
  ...orderFaults(records),
  ...callbackFaults(records),
  ...storeFaults(records),
  ...records.processFaults,
]

const ENDED: ReadonlySet<string> = new Set(['succeed', 'failed'])

/** By the end every create has been cleared up and every task has ended, as its upstream's has. */
function storeFaults({ store }: SoakRecords): readonly string[] {
  const open = Object.entries(store.states).filter(([state, count]) => !ENDED.has(state) && count > 0)
  const faults = open.map(([state, count]) => `the store still has ${count} tasks in the state ${state}`)
  return store.waitingEvents === 0
    ? faults
    : [...faults, `the store still has ${store.waitingEvents} events to deliver`]
}
