import { describe, expect, it } from '@jest/globals'
import { eventually } from '../../test/support/eventually.js'
import { failureOf } from '../../test/support/failures.js'
import { callOf, taskLab, videoChannel } from '../../test/support/task-lab.js'
import type { ErrorKind } from '../core/errors.js'
import { type FailedAttempt, GatewayError } from '../core/gateway-error.js'
import { callerLeft } from '../core/request-context.js'

const attemptError = (kind: ErrorKind, attempt: FailedAttempt, details: object = {}): GatewayError =>
  new GatewayError(kind, 'What the upstream did.', { attempt, ...details })

const LOST = attemptError('upstream_failed', { phase: 'sent', channelFault: true })
const REFUSED = attemptError('invalid_request', { phase: 'answered' }, { code: 'content_policy_violation' })
const BUSY = attemptError('rate_limited', { phase: 'answered', channelFault: true })
const UNSENT = attemptError('upstream_failed', { phase: 'unsent', channelFault: true })

const TWO_CHANNELS = [videoChannel('first', { priority: 0 }), videoChannel('second', { priority: 1 })]

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
