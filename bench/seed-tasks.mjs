/**
 * Puts video tasks into a store that are under way at the upstream: thousands of creates would take longer than all that is
 * measured. Makes the store when there is none. Environment: DATA (a directory), COUNT (may be 0), CREATED_AT_MS,
 * FIRST_POLL_MS (after their creation, when the first is due).
 */
import { createDatabase } from '../dist/storage/storage.module.js'
import { createLogging } from '../dist/observability/logger.js'
import { Readiness } from '../dist/observability/readiness.js'
import { adoptedTask, taskObject } from './tasks-wire.mjs'

/** Of one statement: PostgreSQL counts its parameters in 16 bits. */
const ROWS = 1_000
/** The gateway's default: the first polls are spread over it, as later ones are. */
const POLL_INTERVAL_MS = 5_000
const DAY_MS = 86_400_000

const count = Number(process.env.COUNT)
const createdAtMs = Number(process.env.CREATED_AT_MS)
const firstPollMs = Number(process.env.FIRST_POLL_MS ?? 2_000)

function rowOf(index) {
  const task = adoptedTask(index, createdAtMs)
  return {
    id: `bench-${index}`,
    kind: 'text2video',
    owner_id: 'bench',
    channel_id: 'bench-video',
    model: 'vidgen-v1-6',
    state: 'processing',
    upstream_task_id: task.id,
    upstream_external_id: task.externalId,
    // As callers see it: without the id that only the upstream knows.
    object: JSON.stringify(taskObject({ ...task, externalId: '' }, false)),
    callback_token: `bench-${index}`,
    next_poll_at_ms: createdAtMs + firstPollMs + Math.round((index / count) * POLL_INTERVAL_MS),
    locked_until_ms: 0,
    created_at_ms: createdAtMs,
    updated_at_ms: createdAtMs,
    deadline_at_ms: createdAtMs + DAY_MS,
  }
}

const { logger } = createLogging('warn')
const database = createDatabase({ maxConnections: 1 }, process.env.DATA, new Readiness(), logger)
await database.open()
for (let first = 0; first < count; first += ROWS) {
  const rows = Array.from({ length: Math.min(ROWS, count - first) }, (_, index) => rowOf(first + index))
  await database.run((queries) => queries.insertInto('task').values(rows).execute())
}
await database.onApplicationShutdown()
