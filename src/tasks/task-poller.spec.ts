import { afterEach, describe, expect, it } from '@jest/globals'
import { eventually } from '../../test/support/eventually.js'
import {
  counts,
  make,
  pass,
  passRound,
  passUntil,
  startedLab,
  stopLabs,
  taskOf,
} from '../../test/support/running-labs.js'
import { CALLBACK_URL, callOf, videoChannel } from '../../test/support/task-lab.js'
import { GatewayError } from '../core/gateway-error.js'
import { NO_RECORD, TOO_LATE } from './task-verdict.js'
import type { Task } from './task.js'

const LOST = new GatewayError('upstream_failed', 'Lost.', { attempt: { phase: 'sent' } })
const DOWN = new GatewayError('upstream_failed', 'Down.', { attempt: { phase: 'unsent', channelFault: true } })

afterEach(stopLabs)

describe('A task in the background', () => {
  it('is followed to its end although nobody asks for it, and its caller is told of each change', async () => {
    const lab = startedLab()
    await make(lab, 1, { callbackUrl: CALLBACK_URL })
    lab.upstream.move('processing')
    await passUntil(lab, 'processing', 1)
    lab.upstream.move('succeed')
    await passUntil(lab, 'succeed', 1)
    const task = await taskOf(lab, 'order-0')
    const deliveries = await lab.engine.deliveries(task as Task)
    expect(deliveries.map(({ body }) => (JSON.parse(body) as Task & { task_status: string }).task_status)).toEqual([
      'processing',
      'succeed',
    ])
    expect(deliveries.at(-1)?.body).toBe(task?.object)
    expect(lab.wakes()).toBe(2)
  })

  it('is not polled before its time, nor after its end', async () => {
    const lab = startedLab()
    await make(lab, 1)
    // The shortest interval: 5 s less a fifth.
    await passRound(lab, 3999)
    expect(lab.upstream.reads).toEqual([])
    lab.upstream.move('succeed')
    await passUntil(lab, 'succeed', 1)
    expect(lab.upstream.reads).toEqual(['830000'])
    await passRound(lab, 3_600_000)
    expect(lab.upstream.reads).toHaveLength(1)
  })

  it('never goes back, and ends when it never ends upstream', async () => {
    const lab = startedLab({ sections: { tasks: { maxAgeMs: 60_000 } } })
    await make(lab, 1)
    lab.upstream.move('processing')
    await passUntil(lab, 'processing', 1)
    lab.upstream.move('submitted')
    await passUntil(lab, 'failed', 1)
    expect((await taskOf(lab, 'order-0'))?.object).toContain(TOO_LATE)
    expect(await counts(lab)).toEqual({ failed: 1 })
  })

  it('fails when its upstream has forgotten it twice in a row, not once', async () => {
    const lab = startedLab()
    await make(lab, 1)
    lab.upstream.hidden.add('830000')
    pass(lab, 6000)
    await eventually(async () => (await taskOf(lab, 'order-0'))?.misses === 1)
    lab.upstream.hidden.clear()
    pass(lab, 6000)
    await eventually(async () => (await taskOf(lab, 'order-0'))?.misses === 0)
    lab.upstream.hidden.add('830000')
    await passUntil(lab, 'failed', 1)
  })

  it('is polled at once when its upstream calls back, which nobody else can', async () => {
    const lab = startedLab({
      sections: { server: { publicUrl: 'https://gateway.example/' }, tasks: { pollIntervalMs: 600_000 } },
    })
    await make(lab, 1)
    const token = lab.upstream.creates[0]?.callbackUrl?.split('/').at(-1) ?? ''
    lab.upstream.move('succeed')
    for (const wrong of ['', 'a'.repeat(32), `${token}x`, token.toLowerCase().replace(/[a-z]/, '-')]) {
      await expect(lab.intake.hasten(wrong)).rejects.toMatchObject({ kind: 'not_found' })
    }
    expect(await counts(lab)).toEqual({ submitted: 1 })
    await lab.intake.hasten(token)
    await eventually(async () => (await counts(lab)).succeed === 1)
    lab.store.setReachable(false)
    await expect(lab.intake.hasten('not a token')).rejects.toMatchObject({ kind: 'not_found' })
    lab.store.setReachable(true)
    await expect(lab.intake.hasten(token)).rejects.toMatchObject({ kind: 'not_found' })
  })
})

describe('A create whose answer was lost', () => {
  it('is looked for at once, and never sent again', async () => {
    const lab = startedLab({ sections: { tasks: { pollIntervalMs: 600_000 } } })
    lab.upstream.createFaults.push({ when: 'after', error: LOST })
    await make(lab, 1)
    await eventually(async () => (await counts(lab)).submitted === 1)
    expect(lab.upstream.creates).toHaveLength(1)
    expect(await taskOf(lab, 'order-0')).toMatchObject({ upstreamTaskId: '830000' })
  })

  it('is looked for until its time is up, then has failed for good', async () => {
    const lab = startedLab()
    lab.upstream.createFaults.push({ when: 'before', error: LOST })
    await make(lab, 1, { callbackUrl: CALLBACK_URL })
    await passUntil(lab, 'failed', 1, 5000)
    const task = (await taskOf(lab, 'order-0')) as Task
    expect(task.updatedAtMs - task.createdAtMs).toBeGreaterThanOrEqual(600_000)
    expect(task.object).toContain(NO_RECORD)
    expect(await lab.engine.deliveries(task)).toMatchObject([{ body: task.object }])
    expect(lab.upstream.creates).toHaveLength(1)
    // Ten minutes of searching with growing pauses.
    expect(lab.upstream.reads.length).toBeLessThan(25)
    expect(await lab.engine.find('text2video', task.upstreamTaskId ?? '', callOf())).toMatchObject({ state: 'failed' })
  })
})

describe('Tasks of an upstream that is down', () => {
  it('are polled ever more seldom and found when it is back', async () => {
    const lab = startedLab()
    await make(lab, 1)
    lab.upstream.readFault = () => DOWN
    const delays: number[] = []
    for (let polls = 1; polls <= 5; polls++) {
      const dueAtMs = (await taskOf(lab, 'order-0'))?.nextPollAtMs ?? 0
      await passRound(lab, dueAtMs - lab.clock.nowMs())
      await eventually(async () => (await taskOf(lab, 'order-0'))?.polls === polls)
      delays.push(((await taskOf(lab, 'order-0'))?.nextPollAtMs ?? 0) - lab.clock.nowMs())
    }
    expect(lab.upstream.reads).toHaveLength(5)
    expect(delays[0]).toBeLessThanOrEqual(6000)
    expect(delays[2]).toBeGreaterThanOrEqual(16_000)
    expect(delays[4]).toBeGreaterThanOrEqual(48_000)
    lab.upstream.readFault = () => undefined
    lab.upstream.move('succeed')
    await passUntil(lab, 'succeed', 1)
  })

  it('wait for a channel that left the configuration, and are polled again when it is back', async () => {
    const lab = startedLab({ laterChannels: [videoChannel('other')] })
    await make(lab, 1)
    lab.upstream.move('succeed')
    await lab.reload()
    pass(lab, 6000)
    await eventually(async () => (await taskOf(lab, 'order-0'))?.polls === 1)
    expect([lab.upstream.reads, await counts(lab)]).toEqual([[], { submitted: 1 }])
    await lab.poller.stop()
    const back = startedLab({ world: lab })
    await passUntil(back, 'succeed', 1)
  })

  it('whose channel never comes back fail when their time is up', async () => {
    const lab = startedLab({ laterChannels: [videoChannel('other')], sections: { tasks: { maxAgeMs: 300_000 } } })
    await make(lab, 1)
    await lab.reload()
    await passUntil(lab, 'failed', 1)
  })
})
