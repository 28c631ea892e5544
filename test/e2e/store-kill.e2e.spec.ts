import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { sql } from 'kysely'
import type { Database } from '../../src/storage/database.js'
import { KyselyCallbackRepository } from '../../src/tasks/callback.pg.js'
import { KyselyTaskRepository } from '../../src/tasks/task.pg.js'
import { eventually } from '../support/eventually.js'
import { NEVER_MS, type StoreAt, storedIn, UsageProcesses } from '../support/process-labs.js'
import { dataDirectory, directoryWithStore, startPostgres, type TestPostgres, testStore } from '../support/stores.js'
import { VideoCaller } from '../support/video-caller.js'

const DIST = fileURLToPath(new URL('../../dist', import.meta.url))
const WRITER = fileURLToPath(new URL('../support/store-writer.mjs', import.meta.url))
/** Thirty times what the kills take on a machine that has nothing else to do. */
const PATIENCE_MS = 600_000
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
    PATIENCE_MS,
  )
})

describe('usage tasks', () => {
  let postgres: TestPostgres
  let lab: UsageProcesses

  beforeAll(async () => {
    postgres = await startPostgres()
    lab = await UsageProcesses.prepare()
  })
  afterEach(() => lab.end())
  afterAll(async () => {
    await lab.close()
    await postgres.close()
  })

  const stores: readonly (readonly [string, (directory: string) => Promise<{ sections: object; at: StoreAt }>])[] = [
    [
      'the embedded store',
      (directory) => Promise.resolve({ sections: {}, at: { directory: join(directory, 'data') } }),
    ],
    [
      'PostgreSQL',
      async () => {
        const database = { url: await postgres.emptyDatabase() }
        return { sections: { database }, at: database }
      },
    ],
  ]

  describe('A gateway that is killed as soon as it shows the end of a task', () => {
    it.each(stores)('has written down who pays for it: %s', async (_name, place) => {
      const directory = await directoryWithStore()
      const { sections, at } = await place(directory)
      const prices = [{ models: ['*'], videos: '0.35' }]
      const gateway = await lab.start({ ...sections, prices, usage: { store: true, batchMs: NEVER_MS } }, directory)
      const caller = new VideoCaller({ url: await gateway.listening() })
      const [made, failed] = [await caller.created(), await caller.created()]
      lab.vidgen.settle(made, 'succeed')
      lab.vidgen.settle(failed, 'failed')
      const isOver = async (id: string): Promise<boolean> =>
        ['succeed', 'failed'].includes((await caller.read(id)).body.data.task_status)
      await eventually(() => isOver(failed))
      await eventually(() => isOver(made))
      gateway.child.kill('SIGKILL')
      await gateway.exited
      const tasks = (await storedIn(at)).filter(({ kind }) => kind === 'task')
      const ends = tasks.map(({ outcome, cost, units }) => ({ outcome, cost, units }))
      expect(ends.sort((one, other) => one.outcome.localeCompare(other.outcome))).toEqual([
        { outcome: 'ok', cost: '0.35', units: { videos: 1 } },
        { outcome: 'upstream_failed', cost: '0', units: { videos: 0 } },
      ])
    })
  })
})
