import { describe, expect, it } from '@jest/globals'
import { eventually } from '../../test/support/eventually.js'
import { find, made } from '../../test/support/task-calls.js'
import { CALLBACK_URL, callOf, taskLab, taskWorld, TEAM_A, TEAM_B, videoChannel } from '../../test/support/task-lab.js'
import { GatewayError } from '../core/gateway-error.js'
import type { Task } from './task.js'

const LOST = new GatewayError('upstream_failed', 'Lost.', { attempt: { phase: 'sent' } })

describe('A task asked for', () => {
  it('by either of its ids is shown as its upstream shows it now', async () => {
    const lab = taskLab()
    await made(lab, 'order-1')
    lab.upstream.move('processing')
    expect(await find(lab, 'order-1')).toMatchObject({ state: 'processing', upstreamTaskId: '830000' })
    lab.clock.advance(1000)
    lab.upstream.move('succeed')
    const task = await find(lab, '830000')
    expect(task?.state).toBe('succeed')
    expect(task?.object).toContain('"external_task_id":"order-1"')
    expect(task?.object).toContain('"seed":12345678901234567890,"weight":1.0')
  })

  it('again and again costs its upstream one call a second', async () => {
    const lab = taskLab()
    await made(lab, 'order-1')
    await Promise.all(Array.from({ length: 50 }, () => find(lab, 'order-1')))
    expect(lab.upstream.reads).toHaveLength(1)
    lab.clock.advance(999)
    await find(lab, 'order-1')
    expect(lab.upstream.reads).toHaveLength(1)
    lab.clock.advance(1)
    await find(lab, 'order-1')
    expect(lab.upstream.reads).toHaveLength(2)
  })

  it('is shown as stored while its upstream fails, has forgotten it, or is configured no more', async () => {
    const lab = taskLab({ laterChannels: [videoChannel('other')] })
    await made(lab, 'order-1')
    lab.upstream.readFault = () => LOST
    expect(await find(lab, 'order-1')).toMatchObject({ state: 'submitted' })
    lab.upstream.readFault = () => undefined
    lab.upstream.hidden.add('830000')
    for (let times = 0; times < 3; times++) {
      lab.clock.advance(1000)
      expect(await find(lab, 'order-1')).toMatchObject({ state: 'submitted', misses: 0 })
    }
    await lab.reload()
    lab.clock.advance(1000)
    expect(await find(lab, 'order-1')).toMatchObject({ state: 'submitted' })
    expect(lab.upstream.reads).toHaveLength(4)
  })

  it('that has ended is never asked for again', async () => {
    const lab = taskLab()
    await made(lab, 'order-1')
    lab.upstream.move('failed')
    await find(lab, 'order-1')
    lab.upstream.move('succeed')
    lab.clock.advance(60_000)
    expect(await find(lab, 'order-1')).toMatchObject({ state: 'failed' })
    expect(lab.upstream.reads).toHaveLength(1)
  })

  it('of somebody else is not there, by whatever id', async () => {
    const lab = taskLab()
    await made(lab, 'order-1')
    const upstreamExternalId = lab.upstream.creates[0]?.externalId ?? ''
    for (const id of ['order-1', '830000', upstreamExternalId]) {
      await expect(find(lab, id, TEAM_B)).rejects.toMatchObject({ kind: 'not_found' })
    }
    await expect(lab.engine.find('multi-image2video', '830000', callOf())).resolves.toBeUndefined()
  })

  it('that this gateway never saw is nobodys', async () => {
    expect(await find(taskLab(), '831200000000000001')).toBeUndefined()
  })
})

describe('A task whose create was lost', () => {
  it('is found by its external id at once, once only, and its caller is told', async () => {
    const lab = taskLab()
    lab.upstream.createFaults.push({ when: 'after', error: LOST })
    await expect(made(lab, 'order-1', TEAM_A, { callbackUrl: CALLBACK_URL })).rejects.toBeInstanceOf(GatewayError)
    lab.upstream.move('processing')
    const task = await find(lab, 'order-1')
    expect(task).toMatchObject({ state: 'processing', upstreamTaskId: '830000' })
    expect(lab.upstream.creates).toHaveLength(1)
    expect(await lab.engine.deliveries(task as Task)).toMatchObject([{ body: task?.object, url: CALLBACK_URL }])
  })

  it('is not there as long as the upstream does not know it, but worth asking for again', async () => {
    const lab = taskLab()
    lab.upstream.createFaults.push({ when: 'before', error: LOST })
    await expect(made(lab, 'order-1')).rejects.toBeInstanceOf(GatewayError)
    for (const isFailing of [false, true]) {
      lab.clock.advance(1000)
      if (isFailing) lab.upstream.readFault = () => LOST
      await expect(find(lab, 'order-1')).rejects.toMatchObject({
        kind: 'not_found',
        details: { retryAfterSeconds: 5, retryable: true },
      })
    }
    expect(await lab.store.tasks.countByState()).toEqual({ unknown: 1 })
  })

  it('is left to the process that makes it while that still waits and the upstream knows nothing of it', async () => {
    const lab = taskLab()
    lab.upstream.hidden.add('830000')
    const release = lab.upstream.holdCreates()
    const create = made(lab, 'order-1')
    await eventually(() => lab.upstream.made.length === 1)
    await expect(find(lab, 'order-1')).rejects.toMatchObject({ kind: 'not_found' })
    expect(await lab.store.tasks.countByState()).toEqual({ creating: 1 })
    release()
    await create
  })

  it('is found while the process that made it still waits for its answer, which then says the same', async () => {
    const lab = taskLab()
    const release = lab.upstream.holdCreates()
    const create = made(lab, 'order-1')
    await eventually(() => lab.upstream.made.length === 1)
    const task = await find(lab, 'order-1')
    release()
    const answer = await create
    expect(answer.body).toContain(`"data":${task?.object ?? 'nothing'}}`)
    expect(await lab.store.tasks.countByState()).toEqual({ submitted: 1 })
  })
})

describe('A task asked for twice at once', () => {
  it('by two replicas is changed once and announced once', async () => {
    const world = taskWorld()
    const labs = [taskLab({ world }), taskLab({ world })] as const
    await made(labs[0], 'order-1', TEAM_A, { callbackUrl: CALLBACK_URL })
    world.upstream.move('succeed')
    const release = world.upstream.holdReads()
    const finds = Promise.all(labs.map((lab) => find(lab, 'order-1')))
    await eventually(() => world.upstream.readsUnderWay === 2)
    release()
    const [first, second] = await finds
    expect([first?.state, second]).toEqual(['succeed', first])
    expect(await labs[0].engine.deliveries(first as Task)).toHaveLength(1)
  })
})

describe('The list of tasks', () => {
  it('holds the callers own, newest first, in pages, without creates in doubt', async () => {
    const lab = taskLab()
    for (const id of ['one', 'two', 'three']) {
      await made(lab, id)
      lab.clock.advance(1)
    }
    await made(lab, 'foreign', TEAM_B)
    lab.upstream.createFaults.push({ when: 'after', error: LOST })
    await expect(made(lab, 'lost')).rejects.toBeInstanceOf(GatewayError)
    const page = async (offset: number, limit: number) =>
      (await lab.engine.list('text2video', { offset, limit }, TEAM_A)).map((task) => task.externalTaskId)
    expect(await page(0, 30)).toEqual(['three', 'two', 'one'])
    expect(await page(1, 1)).toEqual(['two'])
    expect(await lab.engine.list('multi-image2video', { offset: 0, limit: 30 }, TEAM_A)).toEqual([])
  })
})

describe('The events of a task', () => {
  it('can be sent again by their owner alone', async () => {
    const lab = taskLab()
    await made(lab, 'order-1', TEAM_A, { callbackUrl: CALLBACK_URL })
    lab.upstream.move('succeed')
    const [delivery] = await lab.engine.deliveries((await find(lab, 'order-1')) as Task)
    const webhookId = delivery?.webhookId ?? ''
    await lab.store.callbacks.settle(webhookId, { outcome: 'exhausted', atMs: 1, error: 'No.' })
    expect(await lab.engine.redeliver(webhookId, TEAM_B)).toBe(false)
    expect(lab.wakes()).toBe(1)
    expect(await lab.engine.redeliver(webhookId, TEAM_A)).toBe(true)
    expect(lab.wakes()).toBe(2)
    expect(await lab.store.callbacks.nextDueAtMs()).toBe(lab.clock.nowMs())
  })
})
