import { expect, it } from '@jest/globals'
import type { ClaimRequest, Reschedule } from '../../src/tasks/task.repository.js'
import { someSubmitted, someTask, START_MS, submitted } from '../support/task-rows.js'
import type { Repositories } from './task-repository.contract.js'

const LEASE_MS = 60_000

const claim = (given: Partial<ClaimRequest> = {}): ClaimRequest => {
  const nowMs = given.nowMs ?? START_MS + 10_000
  return { nowMs, lockedUntilMs: nowMs + LEASE_MS, limit: 10, exceptChannels: [], ...given }
}

const again = (id: string, given: Partial<Reschedule> = {}): Reschedule => ({
  id,
  nextPollAtMs: START_MS + 15_000,
  polls: 1,
  misses: 0,
  ...given,
})

const idsOf = (rows: readonly { readonly id: string }[]): string[] => rows.map(({ id }) => id)

export function describeQueue(repositories: () => Repositories): void {
  it('gives out what is due, the longest due first, and only once', async () => {
    const { tasks } = repositories()
    const late = await someSubmitted(tasks, {}, { nextPollAtMs: START_MS + 2_000 })
    const later = await someSubmitted(tasks, {}, { nextPollAtMs: START_MS + 1_000 })
    const notYet = await someSubmitted(tasks, {}, { nextPollAtMs: START_MS + 10_001 })
    expect(idsOf(await tasks.claimDue(claim()))).toEqual([later, late])
    expect(await tasks.claimDue(claim())).toEqual([])
    expect(idsOf(await tasks.claimDue(claim({ nowMs: START_MS + 10_001 })))).toEqual([notYet])
  })

  it('gives no task to two of twenty that ask at once', async () => {
    const { tasks } = repositories()
    const ids = []
    for (let index = 0; index < 40; index += 1) ids.push(await someSubmitted(tasks))
    const claims = await Promise.all(Array.from({ length: 20 }, () => tasks.claimDue(claim({ limit: 4 }))))
    expect(claims.every((claimed) => claimed.length <= 4)).toBe(true)
    const claimed = claims.flatMap(idsOf)
    expect(new Set(claimed).size).toBe(claimed.length)
    const rest = await tasks.claimDue(claim({ limit: 40 }))
    expect([...claimed, ...idsOf(rest)].sort()).toEqual([...ids].sort())
  })

  it('passes over channels that are busy', async () => {
    const { tasks } = repositories()
    await someSubmitted(tasks, { channelId: 'busy' })
    const id = await someSubmitted(tasks, { channelId: 'idle' })
    expect(idsOf(await tasks.claimDue(claim({ exceptChannels: ['busy', 'gone'] })))).toEqual([id])
  })

  it('gives out again what somebody took and never gave back, once the lease has run out', async () => {
    const { tasks } = repositories()
    const id = await someSubmitted(tasks)
    await tasks.claimDue(claim())
    const lockedUntilMs = START_MS + 10_000 + LEASE_MS
    expect(await tasks.nextDueAtMs()).toBe(lockedUntilMs)
    expect(await tasks.claimDue(claim({ nowMs: lockedUntilMs - 1 }))).toEqual([])
    expect(idsOf(await tasks.claimDue(claim({ nowMs: lockedUntilMs })))).toEqual([id])
  })

  it('gives out a create whose process has died, once its lease has run out', async () => {
    const { tasks } = repositories()
    const task = someTask({ lockedUntilMs: START_MS + 600_000 })
    await tasks.recordIntent(task)
    expect(await tasks.nextDueAtMs()).toBe(START_MS + 600_000)
    expect(await tasks.claimDue(claim({ nowMs: START_MS + 599_999 }))).toEqual([])
    const [taken] = await tasks.claimDue(claim({ nowMs: START_MS + 600_000 }))
    expect(taken).toMatchObject({ id: task.id, state: 'creating' })
  })

  it('puts polls off and frees their leases, a whole batch at once', async () => {
    const { tasks } = repositories()
    const one = await someSubmitted(tasks)
    const two = await someSubmitted(tasks)
    await tasks.claimDue(claim())
    const object = '{"n":1.50}'
    await tasks.reschedule([
      again(one, { polls: 3, misses: 1 }),
      again(two, { nextPollAtMs: START_MS + 20_000, object, updatedAtMs: START_MS + 11_000 }),
    ])
    expect(await tasks.byId(one)).toMatchObject({ polls: 3, misses: 1, object: '{"task_status":"submitted"}' })
    expect(await tasks.byId(two)).toMatchObject({ polls: 1, object, updatedAtMs: START_MS + 11_000 })
    expect(await tasks.nextDueAtMs()).toBe(START_MS + 15_000)
    expect(idsOf(await tasks.claimDue(claim({ nowMs: START_MS + 20_000 })))).toEqual([one, two])
  })

  it('has nothing to do for an empty batch, and leaves tasks that have ended alone', async () => {
    const { tasks } = repositories()
    const id = await someSubmitted(tasks)
    await tasks.change(id, submitted({ from: ['submitted'], state: 'succeed', object: '{"done":true}' }))
    await tasks.reschedule([])
    await tasks.reschedule([again(id, { object: '{"late":true}' })])
    expect(await tasks.byId(id)).toMatchObject({ state: 'succeed', object: '{"done":true}' })
    expect(await tasks.nextDueAtMs()).toBeUndefined()
    expect(await tasks.claimDue(claim({ nowMs: START_MS * 2 }))).toEqual([])
  })

  it('brings a poll forward when the upstream calls, also while one is under way', async () => {
    const { tasks } = repositories()
    const task = someTask()
    await tasks.recordIntent(task)
    await tasks.change(task.id, submitted({ nextPollAtMs: START_MS + 900_000 }))
    expect(await tasks.hasten(task.callbackToken, START_MS + 10_000)).toBe(true)
    expect(idsOf(await tasks.claimDue(claim()))).toEqual([task.id])
    await tasks.hasten(task.callbackToken, START_MS + 11_000)
    await tasks.reschedule([again(task.id, { nextPollAtMs: START_MS + 900_000 })])
    expect(await tasks.nextDueAtMs()).toBeLessThanOrEqual(START_MS + 11_000)
    await tasks.claimDue(claim({ nowMs: START_MS + 11_000 }))
    await tasks.reschedule([again(task.id, { nextPollAtMs: START_MS + 900_000 })])
    expect(await tasks.nextDueAtMs()).toBe(START_MS + 900_000)
  })

  it('hastens nothing for a token nobody has, or for a task that has ended', async () => {
    const { tasks } = repositories()
    const task = someTask()
    await tasks.recordIntent(task)
    await tasks.change(task.id, submitted({ state: 'failed' }))
    expect(await tasks.hasten(task.callbackToken, START_MS)).toBe(false)
    expect(await tasks.hasten('no-such-token', START_MS)).toBe(false)
  })

  it('applies a change only in the states it was meant for', async () => {
    const { tasks } = repositories()
    const id = await someSubmitted(tasks)
    const forward = submitted({ from: ['submitted', 'processing'], state: 'succeed', object: '{"result":1}' })
    expect(await tasks.change(id, forward)).toBe(true)
    expect(await tasks.change(id, submitted({ from: ['submitted', 'processing'], state: 'processing' }))).toBe(false)
    expect(await tasks.byId(id)).toMatchObject({ state: 'succeed', object: '{"result":1}' })
    expect(await tasks.change('no-such-task', forward)).toBe(false)
  })

  it('applies one of ten changes that are made at once', async () => {
    const { tasks } = repositories()
    const id = await someSubmitted(tasks)
    const applied = await Promise.all(
      Array.from({ length: 10 }, () => tasks.change(id, submitted({ from: ['submitted'], state: 'processing' }))),
    )
    expect(applied.filter((wasApplied) => wasApplied)).toHaveLength(1)
  })

  it('keeps the object and the ids that a change does not mention', async () => {
    const { tasks } = repositories()
    const id = await someSubmitted(tasks, {}, { upstreamTaskId: 'u-1', object: '{"kept":1.0}' })
    const times = { nextPollAtMs: START_MS, updatedAtMs: START_MS, deadlineAtMs: START_MS }
    await tasks.change(id, { from: ['submitted'], state: 'processing', polls: 0, misses: 0, ...times })
    expect(await tasks.byId(id)).toMatchObject({ upstreamTaskId: 'u-1', object: '{"kept":1.0}', state: 'processing' })
  })

  it('refuses an upstream id that another task of the channel has, and takes it on another channel', async () => {
    const { tasks } = repositories()
    await someSubmitted(tasks, { channelId: 'one' }, { upstreamTaskId: 'twice' })
    const task = someTask({ channelId: 'one' })
    await tasks.recordIntent(task)
    const change = tasks.change(task.id, submitted({ upstreamTaskId: 'twice' }))
    await expect(change).rejects.toMatchObject({ kind: 'upstream_failed', details: { retryable: false } })
    expect(await tasks.byId(task.id)).toMatchObject({ state: 'creating' })
    await tasks.assignChannel(task.id, 'two')
    expect(await tasks.change(task.id, submitted({ upstreamTaskId: 'twice' }))).toBe(true)
  })

  it('frees the lease with a change', async () => {
    const { tasks } = repositories()
    const id = await someSubmitted(tasks)
    await tasks.claimDue(claim())
    await tasks.change(id, submitted({ from: ['submitted'], state: 'processing', nextPollAtMs: START_MS + 12_000 }))
    expect(idsOf(await tasks.claimDue(claim({ nowMs: START_MS + 12_000 })))).toEqual([id])
  })

  it('forgets what ended long ago and keys that expired, some at a time', async () => {
    const { tasks } = repositories()
    const idempotency = (key: string, expiresAtMs: number) => ({
      idempotency: { ownerId: 'key-a', route: '/r', key, fingerprint: 'f', claimedAtMs: START_MS, expiresAtMs },
    })
    for (const key of ['a', 'b', 'c']) {
      await someSubmitted(tasks, idempotency(key, START_MS + 100), { state: 'failed', updatedAtMs: START_MS })
    }
    const ended = await someSubmitted(tasks, {}, { state: 'succeed', updatedAtMs: START_MS + 50 })
    const running = await someSubmitted(tasks, idempotency('d', START_MS + 101), { updatedAtMs: START_MS })
    expect(await tasks.prune(START_MS + 50, START_MS + 100, 2)).toBe(4)
    expect(await tasks.prune(START_MS + 50, START_MS + 100, 2)).toBe(2)
    expect(await tasks.prune(START_MS + 50, START_MS + 100, 2)).toBe(0)
    expect([await tasks.byId(ended), await tasks.byId(running)]).not.toContain(undefined)
    expect(await tasks.countByState()).toEqual({ succeed: 1, submitted: 1 })
    const { idempotency: kept } = idempotency('d', START_MS + 101)
    expect(await tasks.findIdempotency(kept)).toMatchObject({ state: 'running', taskId: running })
  })
}
