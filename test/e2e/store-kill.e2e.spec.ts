import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from '@jest/globals'
import { sql } from 'kysely'
import type { Database } from '../../src/storage/database.js'
import { KyselyCallbackRepository } from '../../src/tasks/callback.pg.js'
import { KyselyTaskRepository } from '../../src/tasks/task.pg.js'
import { dataDirectory, STORE_START_MS, testStore } from '../support/stores.js'

const DIST = fileURLToPath(new URL('../../dist', import.meta.url))
const WRITER = fileURLToPath(new URL('../support/store-writer.mjs', import.meta.url))
const CYCLES = 3
const FEWEST_LINES = 40

/** Lets a process of its own write until so much is acknowledged, and kills it in the midst of the next; what it named. */
async function writeUntilKilled(directory: string, prefix: string, lines: number): Promise<string[]> {
  if (!existsSync(DIST)) throw new Error(`${DIST} is missing: run "npm run build" first ("npm test" does).`)
  const child = spawn(process.execPath, [WRITER, DIST, directory, prefix], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  const named: string[] = []
  for await (const line of createInterface({ input: child.stdout })) {
    named.push(line)
    if (named.length === lines) child.kill('SIGKILL')
  }
  const [, signal] = (await ended) as [number | null, NodeJS.Signals | null]
  expect(signal).toBe('SIGKILL')
  return named
}

/** Every promise is kept, and no transaction is half there, whether it was acknowledged or not. */
async function check(database: Database, acknowledged: readonly string[]): Promise<void> {
  const tasks = new KyselyTaskRepository(database)
  const callbacks = new KyselyCallbackRepository(database)
  for (const line of acknowledged) {
    const [what, id = ''] = line.split(' ')
    const task = await tasks.byId(id)
    if (what === 'recorded') expect(task).toBeDefined()
    if (what === 'submitted') expect(task).toMatchObject({ state: 'submitted', upstreamTaskId: `upstream-${id}` })
    if (what === 'polled') expect(task).toMatchObject({ polls: 7 })
    expect(await tasks.find('key-a', 'text2video', id)).toEqual(task)
  }
  const torn = await database.run((queries) =>
    sql`select task.id from task
      left join callback_delivery on callback_delivery.task_id = task.id
      left join idempotency_key on idempotency_key.task_id = task.id
      where idempotency_key.key is null
        or (state = 'submitted') <> (callback_delivery.webhook_id is not null)
        or (state = 'submitted') <> (idempotency_key.status is not null)`.execute(queries),
  )
  expect(torn.rows).toEqual([])
  expect(await callbacks.countOpen()).toMatchObject({ waiting: (await tasks.countByState()).submitted })
}

describe('the embedded store', () => {
  it(
    'has everything it acknowledged after a process that was writing is killed, again and again',
    async () => {
      const directory = await dataDirectory()
      const acknowledged: string[] = []
      for (let cycle = 0; cycle < CYCLES; cycle += 1) {
        const lines = FEWEST_LINES + Math.floor(Math.random() * FEWEST_LINES)
        acknowledged.push(...(await writeUntilKilled(directory, `cycle-${cycle}`, lines)))
        const store = testStore({ directory })
        await check(store.database, acknowledged)
        await store.close()
      }
      expect(acknowledged.length).toBeGreaterThanOrEqual(CYCLES * FEWEST_LINES)
      await rm(directory, { recursive: true })
    },
    STORE_START_MS,
  )
})
