import { describe, expect, it } from '@jest/globals'
import { eventually } from '../../test/support/eventually.js'
import { callOf, taskLab, type TaskLab, TEAM_B } from '../../test/support/task-lab.js'
import { GatewayError } from '../core/gateway-error.js'
import { Call } from '../core/request-context.js'

const KEYED = { idempotencyKey: 'key-1', externalTaskId: 'order-1' }
const OTHER_BODY = { ...KEYED, fingerprint: 'b'.repeat(64) }
const LOST = new GatewayError('upstream_failed', 'Lost.', { attempt: { phase: 'sent' } })

const create = (lab: TaskLab, order: object = KEYED) => lab.engine.create(lab.order(order), callOf())

describe('A create under an idempotency key', () => {
  it('that was answered gets the same answer again, byte for byte, and nothing is sent', async () => {
    const lab = taskLab()
    const first = await create(lab)
    expect(await create(lab)).toEqual({ ...first, replayed: true })
    lab.upstream.move('succeed')
    await lab.engine.find('text2video', 'order-1', callOf())
    expect(await create(lab)).toEqual({ ...first, replayed: true })
    expect(lab.upstream.creates).toHaveLength(1)
  })

  it('that comes with another body is refused, whether the first is done or running', async () => {
    const lab = taskLab()
    const release = lab.upstream.holdCreates()
    const first = create(lab)
    await eventually(() => lab.upstream.creates.length === 1)
    await expect(create(lab, OTHER_BODY)).rejects.toMatchObject({ kind: 'unprocessable' })
    release()
    await first
    await expect(create(lab, OTHER_BODY)).rejects.toMatchObject({ kind: 'unprocessable' })
  })

  it('is told to come back while the first is running', async () => {
    const lab = taskLab()
    const release = lab.upstream.holdCreates()
    const first = create(lab)
    await eventually(() => lab.upstream.creates.length === 1)
    await expect(create(lab)).rejects.toMatchObject({ kind: 'idempotency_running', details: { retryAfterSeconds: 1 } })
    release()
    await first
    expect((await create(lab)).replayed).toBe(true)
  })

  it('is told to come back while nobody knows what came of the first, then answered from what was found', async () => {
    const lab = taskLab()
    lab.upstream.createFaults.push({ when: 'after', error: LOST })
    await expect(create(lab)).rejects.toMatchObject({ kind: 'upstream_failed' })
    await expect(create(lab)).rejects.toMatchObject({ kind: 'idempotency_running' })
    const task = await lab.engine.find('text2video', 'order-1', callOf())
    const answer = await create(lab)
    expect(answer.replayed).toBe(true)
    expect(answer.body).toMatch(/^\{"code":0,"message":"SUCCEED","request_id":"[\w-]+","data":\{/)
    expect(answer.body).toContain(`"data":${task?.object ?? 'nothing'}}`)
    expect(await create(lab)).toEqual(answer)
    expect(lab.upstream.creates).toHaveLength(1)
  })

  it('looked for in the very moment the first is answered gets no answer of its own making', async () => {
    const lab = taskLab()
    const { tasks } = lab.store
    const release = lab.upstream.holdCreates()
    const first = create(lab)
    await eventually(() => lab.upstream.creates.length === 1)
    const find = tasks.findIdempotency.bind(tasks)
    tasks.findIdempotency = async (claim) => {
      const record = await find(claim)
      release()
      await first
      return record
    }
    await expect(create(lab)).rejects.toMatchObject({ kind: 'idempotency_running' })
    expect(await create(lab)).toEqual({ ...(await first), replayed: true })
  })

  it('gets one answer for ever, also when the task was found before its upstream answered', async () => {
    const lab = taskLab()
    const release = lab.upstream.holdCreates()
    const first = create(lab)
    await eventually(() => lab.upstream.made.length === 1)
    await lab.engine.find('text2video', 'order-1', callOf())
    const early = await create(lab)
    release()
    expect(await first).toEqual({ ...early, replayed: false })
    expect(await create(lab)).toEqual(early)
  })

  it('fifty times at once makes one task', async () => {
    const lab = taskLab()
    const release = lab.upstream.holdCreates()
    const outcomes = Promise.allSettled(Array.from({ length: 50 }, () => create(lab)))
    await eventually(() => lab.upstream.creates.length > 0)
    release()
    const settled = await outcomes
    const refused = settled.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []))
    expect(refused).toHaveLength(49)
    for (const error of refused) expect(error).toMatchObject({ kind: 'idempotency_running' })
    expect(lab.upstream.creates).toHaveLength(1)
  })

  it('of two bodies at once makes one task, and refuses the other body', async () => {
    const lab = taskLab()
    const [first, second] = await Promise.allSettled([create(lab), create(lab, OTHER_BODY)])
    expect(first.status).toBe('fulfilled')
    expect(second).toMatchObject({ status: 'rejected', reason: { kind: 'unprocessable' } })
    expect(lab.upstream.creates).toHaveLength(1)
  })

  it('is a new one for another caller, on another path, and a day later', async () => {
    const lab = taskLab()
    const order = { idempotencyKey: 'key-1' }
    await create(lab, order)
    expect((await lab.engine.create(lab.order(order, TEAM_B), callOf(TEAM_B))).replayed).toBe(false)
    const elsewhere = new Call('req', 'POST', '/vidgen/v1/videos/multi-image2video', 0)
    elsewhere.caller = { keyId: 'team-a' }
    expect((await lab.engine.create(lab.order(order), elsewhere)).replayed).toBe(false)
    lab.clock.advance(86_400_000 - 1)
    await lab.store.tasks.prune(0, lab.clock.nowMs(), 500)
    expect((await create(lab, order)).replayed).toBe(true)
    lab.clock.advance(1)
    await lab.store.tasks.prune(0, lab.clock.nowMs(), 500)
    expect((await create(lab, order)).replayed).toBe(false)
  })
})
