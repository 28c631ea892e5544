import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { STORE_START_MS } from '../support/stores.js'
import { NEVER_POLLED, startVidgenGateway, type VidgenGateway } from '../support/task-gateways.js'
import { type ShownTask, VideoCaller } from '../support/video-caller.js'

const TOO_LATE = 'The task did not finish in time.'

let lab: VidgenGateway
let caller: VideoCaller

beforeAll(async () => {
  lab = await startVidgenGateway({ tasks: { ...NEVER_POLLED, maxAgeMs: 1000 } })
  caller = new VideoCaller(lab.gateway)
}, STORE_START_MS)
afterAll(() => lab.close())

describe('a task that does not end within its time', () => {
  it('has failed, with the reason, everywhere it is shown, and stays so whatever the upstream says', async () => {
    const created = await caller.create({ prompt: 'x #stuck', callback_url: lab.receiver.url() })
    const { task_id: id, created_at: createdAt } = created.body.data
    lab.simulator.advance(id)
    const stream = await caller.follow(id)
    expect(await stream.ended).toBe(true)
    await lab.receiver.has(2)
    lab.simulator.settle(id, 'succeed')
    const { body } = await caller.read(id)
    expect(body.data).toMatchObject({ task_id: id, task_status: 'failed', task_status_msg: TOO_LATE })
    expect(body.data.created_at).toBe(createdAt)
    for (const text of [stream.objects.at(-1), lab.receiver.received.at(-1)?.body]) {
      expect(JSON.parse(text ?? '') as ShownTask).toEqual(body.data)
    }
    expect((await caller.list()).body.data).toEqual([body.data])
  })

  it('has failed as well when its upstream has gone away', async () => {
    const id = await caller.created()
    await lab.proxy.close()
    const stream = await caller.follow(id)
    expect(await stream.ended).toBe(true)
    expect(stream.statuses).toEqual(['submitted', 'failed'])
    expect(stream.objects.at(-1)).toContain(TOO_LATE)
  })
})
