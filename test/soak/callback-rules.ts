import {
  type AuditedTask,
  type CreateAttempt,
  distinct,
  grouped,
  isEnd,
  type ReceivedCallback,
  type SoakRecords,
} from './soak-records.js'

/** Every event has one id and one body, is delivered or visibly given up, and none is missing, above all not the last. */
export function callbackFaults(records: SoakRecords): readonly string[] {
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
      .map(({ taskId }) => `nobody was told of the end of task ${taskId}`),
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
