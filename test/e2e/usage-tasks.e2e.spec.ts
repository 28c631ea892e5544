import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { eventually } from '../support/eventually.js'
import { emptyDirectory } from '../support/gateway-process.js'
import { startPostgres, type TestPostgres } from '../support/postgres.js'
import { NEVER_MS, type StoreAt, storedIn, UsageProcesses } from '../support/process-labs.js'
import { STORE_START_MS } from '../support/stores.js'
import { VideoCaller } from '../support/video-caller.js'

let postgres: TestPostgres
let lab: UsageProcesses

beforeAll(async () => {
  postgres = await startPostgres()
  lab = await UsageProcesses.prepare()
}, STORE_START_MS)
afterEach(() => lab.end())
afterAll(async () => {
  await lab.close()
  await postgres.close()
})

const stores: readonly (readonly [string, (directory: string) => Promise<{ sections: object; at: StoreAt }>])[] = [
  ['the embedded store', (directory) => Promise.resolve({ sections: {}, at: { directory: join(directory, 'data') } })],
  [
    'PostgreSQL',
    async () => {
      const database = { url: await postgres.emptyDatabase() }
      return { sections: { database }, at: database }
    },
  ],
]

describe('A gateway that is killed as soon as it shows the end of a task', () => {
  it.each(stores)(
    'has written down who pays for it: %s',
    async (_name, place) => {
      const directory = await emptyDirectory()
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
    },
    STORE_START_MS,
  )
})
