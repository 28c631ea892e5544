import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { Webhook } from 'standardwebhooks'
import { CALLBACK_SECRET, CallbackReceiver } from '../support/callback-lab.js'
import { eventually } from '../support/eventually.js'
import { callerOf, kill, TaskProcesses } from '../support/process-labs.js'

let lab: TaskProcesses
beforeEach(async () => {
  lab = await TaskProcesses.prepare()
})
afterEach(() => lab.close())

describe('a gateway that is killed', () => {
  it('has every task it acknowledged when it is back, asks for it on, and reports its end', async () => {
    const { simulator, receiver } = lab
    const first = await lab.start()
    const before = await callerOf(first)
    const order = { external_task_id: 'order-77', callback_url: receiver.url() }
    const header = { 'idempotency-key': 'survives' }
    const created = await before.create(order, header)
    expect(created.status).toBe(200)
    await kill(first)
    const { task_id: id } = created.body.data
    simulator.settle(id, 'succeed')

    const after = await callerOf(await lab.start())
    await receiver.has(1)
    const [{ headers, body }] = receiver.received as [(typeof receiver.received)[number]]
    const event = new Webhook(CALLBACK_SECRET).verify(body, headers as Record<string, string>)
    expect(event).toMatchObject({ task_id: id, task_status: 'succeed', task_info: { external_task_id: 'order-77' } })
    for (const name of [id, 'order-77']) expect((await after.read(name)).body.data).toEqual(event)
    expect(await after.listed()).toEqual([id])
    const replay = await after.create(order, header)
    expect([replay.text, replay.headers['x-idempotent-replay']]).toEqual([created.text, 'true'])
    expect((await after.create(order)).status).toBe(400)
    expect(simulator.creates).toHaveLength(1)
  })

  it('while the upstream makes a task finds it by its external id, made once', async () => {
    const { simulator, proxy } = lab
    const first = await lab.start()
    const before = await callerOf(first)
    const order = { external_task_id: 'order-78' }
    const header = { 'idempotency-key': 'in-doubt' }
    proxy.hold()
    const creating = before.create(order, header).catch((error: unknown) => error)
    await eventually(() => simulator.creates.length === 1)
    await kill(first)
    expect(await creating).toMatchObject({ code: 'ECONNRESET' })

    const after = await callerOf(await lab.start())
    // A create with an unknown outcome is never sent again; the outcome stays unknown while the upstream does not respond.
    expect((await after.create(order, header)).status).toBe(409)
    proxy.release()
    const { status, body } = await after.read('order-78')
    expect([status, body.data.task_id]).toEqual([200, simulator.creates[0]?.id])
    const replay = await after.create(order, header)
    expect([replay.body.data.task_id, replay.headers['x-idempotent-replay']]).toEqual([body.data.task_id, 'true'])
    expect(simulator.creates).toHaveLength(1)
  })

  it('has every event that was not delivered when it is back, under the same webhook-id', async () => {
    const first = await lab.start()
    const before = await callerOf(first)
    const url = lab.receiver.url()
    // The port is closed at first.
    await lab.receiver.close()
    const id = await before.created({ callback_url: url })
    lab.simulator.settle(id, 'failed')
    await eventually(async () => (await before.deliveries(id)).body.data[0]?.attempts === 1)
    const [delivery] = (await before.deliveries(id)).body.data
    await kill(first)

    lab.receiver = await CallbackReceiver.start(Number(new URL(url).port))
    const after = await callerOf(await lab.start())
    expect((await after.deliveries(id)).body.data).toEqual([delivery])
    await after.redeliver(delivery?.webhook_id ?? '')
    await lab.receiver.has(1)
    expect(lab.receiver.webhookIds).toEqual([delivery?.webhook_id])
  })
})
