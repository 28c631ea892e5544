import { describe, expect, it } from '@jest/globals'
import { eventually } from '../../test/support/eventually.js'
import { CALLBACK_URL, callOf, taskLab, TEAM_A, TEAM_B, videoChannel } from '../../test/support/task-lab.js'
import { type ErrorKind } from '../common/errors/error-kinds.js'
import { type FailedAttempt, GatewayError } from '../common/errors/gateway-error.js'
import { callerLeft } from '../common/http/call.js'

const attemptError = (kind: ErrorKind, attempt: FailedAttempt, details: object = {}): GatewayError =>
  new GatewayError(kind, 'What the upstream did.', { attempt, ...details })

const LOST = attemptError('upstream_failed', { phase: 'sent', channelFault: true })
const REFUSED = attemptError('invalid_request', { phase: 'answered' }, { code: 'content_policy_violation' })
const BUSY = attemptError('rate_limited', { phase: 'answered', channelFault: true })
const UNSENT = attemptError('upstream_failed', { phase: 'unsent', channelFault: true })

const TWO_CHANNELS = [videoChannel('first', { priority: 0 }), videoChannel('second', { priority: 1 })]

const failureOf = async (work: Promise<unknown>): Promise<GatewayError> => {
  const error: unknown = await work.then(
    () => new Error('it did not fail'),
    (reason: unknown) => reason,
  )
  if (!(error instanceof GatewayError)) throw error
  return error
}

const dataOf = (body: string): unknown => (JSON.parse(body) as { data: unknown }).data

describe('A create', () => {
  it('is answered with the upstreams object under the callers own external id', async () => {
    const lab = taskLab()
    const call = callOf()
    const answer = await lab.engine.create(lab.order({ externalTaskId: 'order-1' }), call)
    expect(answer).toEqual({
      status: 200,
      body:
        `{"code":0,"message":"SUCCEED","request_id":"${call.requestId}","data":` +
        '{"task_id":"830000","task_status":"submitted","task_info":{"external_task_id":"order-1"},' +
        '"seed":12345678901234567890,"weight":1.0,"unheard_of":[null],' +
        '"created_at":1750000000000,"updated_at":1750000000000}}',
      replayed: false,
    })
    expect(lab.upstream.creates).toEqual([
      { channelId: 'main', externalId: expect.stringMatching(/^[0-9a-f]{12}\.order-1$/) as unknown },
    ])
  })

  it('without an external id gives the upstream one all the same, and shows none', async () => {
    const lab = taskLab()
    const answer = await lab.engine.create(lab.order(), callOf())
    expect(dataOf(answer.body)).toMatchObject({ task_info: { external_task_id: '' } })
    expect(lab.upstream.creates[0]?.externalId).toMatch(/^[0-9a-f]{12}\.[0-9a-f]{32}$/)
  })

  it('is recorded before the upstream is asked: without a store nothing is sent', async () => {
    const lab = taskLab()
    lab.store.setReachable(false)
    expect((await failureOf(lab.engine.create(lab.order(), callOf()))).kind).toBe('overloaded')
    expect(lab.upstream.creates).toEqual([])
  })

  it('is in the store while the upstream is at work', async () => {
    const lab = taskLab()
    const release = lab.upstream.holdCreates()
    const create = lab.engine.create(lab.order(), callOf())
    await eventually(() => lab.upstream.creates.length === 1)
    expect(await lab.store.tasks.countByState()).toEqual({ creating: 1 })
    release()
    await create
    expect(await lab.store.tasks.countByState()).toEqual({ submitted: 1 })
  })

  it('of fifty at once with one external id is made once; the others are told which field', async () => {
    const lab = taskLab()
    const release = lab.upstream.holdCreates()
    const creates = Array.from({ length: 50 }, () =>
      lab.engine.create(lab.order({ externalTaskId: 'order-1' }), callOf()),
    )
    const outcomes = Promise.allSettled(creates)
    await eventually(() => lab.upstream.creates.length > 0)
    release()
    const refused = (await outcomes).flatMap((outcome) =>
      outcome.status === 'rejected' ? [outcome.reason as unknown] : [],
    )
    expect(refused).toHaveLength(49)
    for (const error of refused)
      expect(error).toMatchObject({ kind: 'conflict', details: { param: 'external_task_id' } })
    expect(lab.upstream.creates).toHaveLength(1)
  })

  it('of another caller may have the same external id', async () => {
    const lab = taskLab()
    await lab.engine.create(lab.order({ externalTaskId: 'order-1' }), callOf(TEAM_A))
    await lab.engine.create(lab.order({ externalTaskId: 'order-1' }, TEAM_B), callOf(TEAM_B))
    expect(new Set(lab.upstream.creates.map(({ externalId }) => externalId)).size).toBe(2)
  })

  it('tells the upstream an address of the gateway, never the callers', async () => {
    const lab = taskLab({ sections: { server: { publicUrl: 'https://gateway.example' } } })
    await lab.engine.create(lab.order({ callbackUrl: CALLBACK_URL }), callOf())
    expect(lab.upstream.creates[0]?.callbackUrl).toMatch(/^https:\/\/gateway\.example\/vidgen\/callbacks\/[\w-]{32}$/)
  })

  it('with a callback address that is not allowed is refused before anything is sent or recorded', async () => {
    const lab = taskLab()
    const create = lab.engine.create(lab.order({ callbackUrl: 'http://127.0.0.1:10/hook' }), callOf())
    expect((await failureOf(create)).details).toMatchObject({ param: 'callback_url', code: 'url_not_allowed' })
    expect([lab.upstream.creates, await lab.store.tasks.countByState()]).toEqual([[], {}])
  })

  it('whose answer is the end is announced as well, as nothing follows it', async () => {
    const lab = taskLab()
    lab.upstream.firstStatus = 'failed'
    const { body } = await lab.engine.create(lab.order({ callbackUrl: CALLBACK_URL, externalTaskId: 'o' }), callOf())
    const task = await lab.engine.find('text2video', 'o', callOf())
    const deliveries = task === undefined ? [] : await lab.engine.deliveries(task)
    expect(deliveries.map((delivery) => JSON.parse(delivery.body) as unknown)).toEqual([dataOf(body)])
    expect(lab.wakes()).toBe(1)
  })
})

describe('A create with an upstream key of the callers own', () => {
  const OWN = { keyId: 'caller', bearer: 'ak|sk' }
  const CHANNELS = [videoChannel('own', { credentials: 'caller' })]

  it('is made, but without callbacks, as nobody else can follow it', async () => {
    const lab = taskLab({ channels: CHANNELS, sections: { server: { publicUrl: 'https://gateway.example' } } })
    const refused = lab.engine.create(lab.order({ callbackUrl: CALLBACK_URL }, OWN), callOf(OWN))
    expect((await failureOf(refused)).details).toMatchObject({ param: 'callback_url', code: 'unsupported_parameter' })
    expect(await lab.store.tasks.countByState()).toEqual({})
    await lab.engine.create(lab.order({}, OWN), callOf(OWN))
    expect(lab.upstream.creates).toEqual([{ channelId: 'own', externalId: expect.any(String) as unknown }])
  })
})

describe('A create that the upstream refuses', () => {
  it.each([
    ['by its own words', REFUSED],
    ['because the account is busy', BUSY],
    ['by not being there', UNSENT],
  ])('%s leaves nothing behind: both ids are free again', async (_how, error) => {
    const lab = taskLab()
    lab.upstream.createFaults.push({ when: 'before', error })
    const order = { externalTaskId: 'order-1', idempotencyKey: 'key-1' }
    expect(await failureOf(lab.engine.create(lab.order(order), callOf()))).toBe(error)
    expect(await lab.store.tasks.countByState()).toEqual({})
    expect((await lab.engine.create(lab.order(order), callOf())).replayed).toBe(false)
  })

  it.each([
    ['refuses', BUSY],
    ['is not there', UNSENT],
  ])('goes to a second channel when the first %s, and is followed there', async (_how, error) => {
    const lab = taskLab({ channels: TWO_CHANNELS })
    lab.upstream.createFaults.push({ when: 'before', error })
    await lab.engine.create(lab.order({ externalTaskId: 'order-1' }), callOf())
    expect(lab.upstream.creates.map(({ channelId }) => channelId)).toEqual(['first', 'second'])
    expect(new Set(lab.upstream.creates.map(({ externalId }) => externalId)).size).toBe(1)
    expect(await lab.engine.find('text2video', 'order-1', callOf())).toMatchObject({ channelId: 'second' })
  })

  it('is told so even if the store is lost meanwhile; the intent is ended later', async () => {
    const lab = taskLab()
    lab.upstream.createFaults.push({ when: 'before', error: REFUSED })
    const order = lab.order({
      send: (provider, context, ids) => {
        lab.store.setReachable(false)
        return provider.create('text2video', Buffer.from(JSON.stringify(ids)), context)
      },
    })
    expect(await failureOf(lab.engine.create(order, callOf()))).toBe(REFUSED)
    lab.store.setReachable(true)
    expect(await lab.store.tasks.countByState()).toEqual({ creating: 1 })
  })
})

describe('A create whose answer is lost', () => {
  const LOSSES = [
    ['the connection breaks', LOST],
    ['the time is up', attemptError('upstream_timeout', { phase: 'sent' })],
    ['the caller leaves', callerLeft()],
    ['nobody knows why', new GatewayError('upstream_failed', 'Something.')],
  ] as const

  it.each(LOSSES)('because %s is in doubt, and the caller must not send it again', async (_why, error) => {
    const lab = taskLab({ channels: TWO_CHANNELS })
    lab.upstream.createFaults.push({ when: 'after', error })
    const failure = await failureOf(lab.engine.create(lab.order({ externalTaskId: 'order-1' }), callOf()))
    expect([failure.kind, failure.details.retryable]).toEqual([error.kind, false])
    expect(await lab.store.tasks.countByState()).toEqual({ unknown: 1 })
    // Never on another channel, nor again under the same external id.
    expect(lab.upstream.creates).toHaveLength(1)
    const again = await failureOf(lab.engine.create(lab.order({ externalTaskId: 'order-1' }), callOf()))
    expect(again.kind).toBe('conflict')
    expect(lab.upstream.creates).toHaveLength(1)
  })

  it('on a second channel is in doubt there, whatever the first has said', async () => {
    const lab = taskLab({ channels: TWO_CHANNELS })
    lab.upstream.createFaults.push({ when: 'before', error: BUSY }, { when: 'after', error: LOST })
    const failure = await failureOf(lab.engine.create(lab.order({ externalTaskId: 'order-1' }), callOf()))
    expect([failure.kind, failure.details.retryable]).toEqual(['upstream_failed', false])
    expect(await lab.engine.find('text2video', 'order-1', callOf())).toMatchObject({
      channelId: 'second',
      state: 'submitted',
    })
  })

  it('by an error nobody foresaw is in doubt as well', async () => {
    const lab = taskLab()
    lab.upstream.createFaults.push({ when: 'after', error: new TypeError('a bug') })
    await expect(lab.engine.create(lab.order(), callOf())).rejects.toThrow('a bug')
    expect(await lab.store.tasks.countByState()).toEqual({ unknown: 1 })
  })

  it('by the store is looked for when its lease is over, and the caller must not send it again', async () => {
    const lab = taskLab()
    const order = lab.order({
      externalTaskId: 'order-1',
      send: async (provider, context, ids) => {
        const made = await provider.create('text2video', Buffer.from(JSON.stringify(ids)), context)
        lab.store.setReachable(false)
        return made
      },
    })
    const failure = await failureOf(lab.engine.create(order, callOf()))
    expect([failure.kind, failure.details.retryable]).toEqual(['overloaded', false])
    lab.store.setReachable(true)
    expect(await lab.store.tasks.countByState()).toEqual({ creating: 1 })
    lab.poller.start()
    lab.clock.advance(570_000 + 30_000 - 1)
    const { claims } = lab.store.tasks
    lab.alarm.wake()
    await eventually(() => lab.store.tasks.claims > claims)
    expect(lab.upstream.reads).toEqual([])
    lab.clock.advance(1)
    lab.alarm.wake()
    await eventually(async () => (await lab.store.tasks.countByState()).submitted === 1)
    await lab.poller.stop()
    expect(lab.upstream.creates).toHaveLength(1)
  })
})

describe('A create that takes longer than anybody waits for', () => {
  it('is answered all the same when it was given up for lost and not found meanwhile', async () => {
    const lab = taskLab()
    lab.poller.start()
    lab.upstream.hidden.add('830000')
    const release = lab.upstream.holdCreates()
    const create = lab.engine.create(lab.order({ externalTaskId: 'order-1' }), callOf())
    await eventually(() => lab.upstream.creates.length === 1)
    lab.clock.advance(600_000)
    lab.alarm.wake()
    await eventually(async () => (await lab.store.tasks.countByState()).unknown === 1)
    await lab.poller.stop()
    release()
    expect((await create).status).toBe(200)
    expect(await lab.store.tasks.countByState()).toEqual({ submitted: 1 })
  })
})

describe('A caller who leaves', () => {
  it('before the upstream is asked leaves nothing behind', async () => {
    const lab = taskLab()
    const call = callOf()
    call.departure.announce()
    expect((await failureOf(lab.engine.create(lab.order(), call))).kind).toBe('caller_left')
    expect([lab.upstream.creates, await lab.store.tasks.countByState()]).toEqual([[], {}])
  })
})

describe('A shutdown', () => {
  it('waits until the last create has written down what came of it', async () => {
    const lab = taskLab()
    lab.upstream.createFaults.push({ when: 'after', error: callerLeft() })
    const release = lab.upstream.holdCreates()
    const create = failureOf(lab.engine.create(lab.order(), callOf()))
    await eventually(() => lab.upstream.creates.length === 1)
    const settled = lab.creation.settled()
    release()
    await settled
    expect(await lab.store.tasks.countByState()).toEqual({ unknown: 1 })
    await create
  })
})
