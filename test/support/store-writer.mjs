/**
 * Writes into the embedded store of a directory, and names on its standard output what has been acknowledged, until it is
 * killed: `node store-writer.mjs <dist> <directory> <prefix of ids>`.
 */
import { writeSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

const [dist, directory, prefix] = process.argv.slice(2)
const load = (path) => import(pathToFileURL(`${dist}/${path}`).href)

const { createDatabase } = await load('storage/storage.module.js')
const { createLogging } = await load('observability/logger.js')
const { Readiness } = await load('observability/readiness.js')
const { KyselyTaskRepository } = await load('tasks/task.pg.js')

const STANDARD_OUTPUT = 1
const NOW_MS = 1_800_000_000_000
const BATCH = 10

const database = createDatabase({ maxConnections: 1 }, directory, new Readiness(), createLogging('silent').logger)
const tasks = new KyselyTaskRepository(database)

/** At once, past every buffer: what is named has been promised. */
const acknowledge = (what, id) => writeSync(STANDARD_OUTPUT, `${what} ${id}\n`)

for (let number = 0; ; number += 1) {
  const id = `${prefix}-${number}`
  await tasks.recordIntent({
    id,
    kind: 'text2video',
    ownerId: 'key-a',
    channelId: 'main',
    model: 'vidgen-v1-6',
    externalTaskId: id,
    upstreamExternalId: id,
    callbackUrl: 'https://caller.example/hook',
    callbackToken: id,
    createdAtMs: NOW_MS,
    lockedUntilMs: NOW_MS,
    deadlineAtMs: NOW_MS,
    idempotency: {
      ownerId: 'key-a',
      route: '/r',
      key: id,
      fingerprint: 'f',
      claimedAtMs: NOW_MS,
      expiresAtMs: NOW_MS * 2,
    },
  })
  acknowledge('recorded', id)
  await tasks.change(id, {
    from: ['creating'],
    state: 'submitted',
    upstreamTaskId: `upstream-${id}`,
    object: '{"task_status":"submitted"}'.padEnd(2_000),
    nextPollAtMs: NOW_MS,
    polls: 0,
    misses: 0,
    updatedAtMs: NOW_MS,
    deadlineAtMs: NOW_MS,
    event: { webhookId: `msg-${id}`, body: '{}', nextAttemptAtMs: NOW_MS },
    answer: { status: 200, body: '{}' },
  })
  acknowledge('submitted', id)
  if (number % BATCH === BATCH - 1) {
    const ids = Array.from({ length: BATCH }, (_, back) => `${prefix}-${number - back}`)
    await tasks.reschedule(ids.map((batched) => ({ id: batched, nextPollAtMs: NOW_MS, polls: 7, misses: 0 })))
    for (const batched of ids) acknowledge('polled', batched)
  }
}
