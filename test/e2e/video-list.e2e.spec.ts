import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { TEST_KEY } from '../support/gateway.js'
import { STORE_START_MS } from '../support/stores.js'
import { OTHER_KEY, startVidgenGateway, type VidgenGateway } from '../support/task-gateways.js'
import { VideoCaller } from '../support/video-caller.js'

const MADE = 32

let lab: VidgenGateway
let caller: VideoCaller
/** Newest first, as the list has them. */
let ids: readonly string[]

beforeAll(async () => {
  lab = await startVidgenGateway()
  caller = new VideoCaller(lab.gateway)
  const created: string[] = []
  while (created.length < MADE) created.push(await caller.created({ external_task_id: `task-${created.length}` }))
  ids = created.reverse()
}, STORE_START_MS)
afterAll(() => lab.close())

describe('the list', () => {
  it.each([
    ['', 0, 30],
    ['?pageNum=1', 0, 30],
    ['?pageNum=2', 30, 32],
    ['?pageNum=3', 32, 32],
    ['?pageSize=1', 0, 1],
    ['?pageSize=5&pageNum=2', 5, 10],
    ['?pageSize=500', 0, 32],
    ['?pageSize=32&pageNum=1000', 32, 32],
  ])('asked for with %j holds the tasks from %i to %i, newest first', async (query, from, to) => {
    const { status, body } = await caller.list(query)
    expect([status, body.code]).toEqual([200, 0])
    expect(body.data.map(({ task_id: id }) => id)).toEqual(ids.slice(from, to))
  })

  it.each([
    ['pageNum', '0'],
    ['pageNum', '1001'],
    ['pageNum', '-1'],
    ['pageNum', '1.5'],
    ['pageNum', 'two'],
    ['pageNum', ''],
    ['pageSize', '0'],
    ['pageSize', '501'],
    ['pageSize', '1e2'],
  ])('is refused with %s %j, naming it', async (name, value) => {
    const { status, body } = await caller.list(`?${name}=${value}`)
    expect([status, body.code]).toEqual([400, 1201])
    expect(body.message).toContain(`'${name}'`)
  })

  it('is refused with a parameter that comes twice', async () => {
    expect((await caller.list('?pageNum=1&pageNum=2')).status).toBe(400)
  })

  it('is empty for a caller without tasks, and for a kind without any', async () => {
    const others = [
      new VideoCaller(lab.gateway, OTHER_KEY),
      new VideoCaller(lab.gateway, TEST_KEY, 'multi-image2video'),
    ]
    for (const other of others) expect((await other.list()).body).toMatchObject({ code: 0, data: [] })
  })

  it('costs its upstream nothing', async () => {
    lab.simulator.reset()
    await caller.list()
    expect(lab.simulator.requests).toEqual([])
  })
})
