import {
  type AuditedTask,
  type CreateAttempt,
  distinct,
  grouped,
  type Reading,
  type SoakRecords,
} from './soak-records.js'

/** At most one task per create, per external id of a caller and per idempotency key; none for what was refused. */
export function createFaults({ attempts, upstream, upstreamDuplicates }: SoakRecords): readonly string[] {
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
 * of its ids, and by nobody else.
 */
export function readingFaults(records: SoakRecords): readonly string[] {
  const { attempts, upstream, audited, trespasses, lists } = records
  const listed = new Map([...lists].map(([owner, ids]) => [owner, timesOf(ids)]))
  const known = new Set(audited.map(({ owner, taskId }) => `${owner} ${taskId}`))
  const promised = distinct([...acknowledgedIn(attempts), ...upstream].map(({ owner, taskId }) => `${owner} ${taskId}`))
  return [
    ...trespasses,
    ...promised.filter((task) => !known.has(task)).map((task) => `nobody looked for the promised task ${task}`),
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

const acknowledgedIn = (attempts: readonly CreateAttempt[]): readonly Acknowledged[] =>
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

/** What nobody asked for must not be made; what is acknowledged must be. */
function unknownCreates(attempts: readonly CreateAttempt[], upstream: SoakRecords['upstream']): readonly string[] {
  const asked = new Set(attempts.map(({ owner, marker }) => `${owner} ${marker}`))
  return upstream
    .filter(({ owner, marker }) => !asked.has(`${owner} ${marker}`))
    .map(({ taskId, owner }) => `the upstream made ${taskId} for ${owner}, who did not ask for it`)
}
