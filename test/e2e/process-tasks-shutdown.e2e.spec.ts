import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { eventually } from '../support/eventually.js'
import { callerOf, TaskProcesses } from '../support/process-labs.js'

let lab: TaskProcesses
beforeEach(async () => {
  lab = await TaskProcesses.prepare()
})
afterEach(() => lab.close())

describe('a second gateway on the same data', () => {
  it('is refused with one message, which names the first and says what to do', async () => {
    const first = await lab.start()
    const caller = await callerOf(first)
    const { code, errors } = await (await lab.start()).exited
    expect(code).toBe(1)
    expect(errors).toContain(lab.data)
    expect(errors).toContain(`process ${first.child.pid}`)
    expect(errors).toMatch(/GATEWAY_DATA[\s\S]*DATABASE_URL/)
    expect(errors.trim().split('\n')).toHaveLength(1)
    // The first goes on.
    expect((await caller.create()).status).toBe(200)
  })
})

describe('a gateway after SIGTERM', () => {
  it('lets a create end, leaves tasks to its successor, and exits with 0', async () => {
    const { simulator, proxy, receiver } = lab
    const first = await lab.start()
    const before = await callerOf(first)
    for (let made = 0; made < 20; made++) await before.created()
    proxy.hold()
    const creating = before.create({ external_task_id: 'last', callback_url: receiver.url() })
    await eventually(() => simulator.creates.length === 21)
    first.child.kill('SIGTERM')
    await first.said(/"draining"/)
    proxy.release()
    const { status, body } = await creating
    expect(status).toBe(200)
    const { code, output, errors } = await first.exited
    expect([code, errors]).toEqual([0, ''])
    expect(output).toMatch(/"stopped"/)
    expect(output).not.toMatch(/"level":(?:50|60)/)

    simulator.settle(body.data.task_id, 'succeed')
    const after = await callerOf(await lab.start())
    await receiver.has(1)
    expect(await after.listed()).toHaveLength(21)
    expect(simulator.creates).toHaveLength(21)
  })

  it('cuts what does not end in time: streams, and a create, which its successor finds again', async () => {
    const { simulator, proxy } = lab
    const first = await lab.start({ shutdownGraceMs: 300 })
    const before = await callerOf(first)
    const stream = await before.follow(await before.created())
    await stream.shows('submitted')
    proxy.hold()
    const creating = before.create({ external_task_id: 'cut' }).catch((error: unknown) => error)
    await eventually(() => simulator.creates.length === 2)
    first.child.kill('SIGTERM')
    expect((await first.exited).code).toBe(0)
    expect(await creating).toMatchObject({ code: 'ECONNRESET' })
    await stream.ended
    proxy.release()

    const after = await callerOf(await lab.start())
    await eventually(async () => (await after.listed()).length === 2)
    expect((await after.read('cut')).body.data.task_id).toBe(simulator.creates[1]?.id)
    expect(simulator.creates).toHaveLength(2)
  })
})
