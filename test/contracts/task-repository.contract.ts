import { describe, expect, it } from '@jest/globals'
import type { UsageRecord } from '../../src/core/usage-record.js'
import type { CallbackRepository } from '../../src/tasks/callback.repository.js'
import type {
  ClaimRequest,
  IdempotencyClaim,
  NewTask,
  Reschedule,
  TaskChange,
  TaskRepository,
} from '../../src/tasks/task.repository.js'
import { DAY_MS, someSubmitted, someTask, START_MS, submitted, usageRecord } from '../support/task-rows.js'

const idempotencyClaim = (given: Partial<IdempotencyClaim> = {}): IdempotencyClaim => ({
  ownerId: 'key-a',
  route: '/vidgen/v1/videos/text2video',
  key: 'order-7',
  fingerprint: 'f'.repeat(64),
  claimedAtMs: START_MS,
  expiresAtMs: START_MS + DAY_MS,
  ...given,
})

function describeIntents(repositories: () => Repositories): void {
  it('keeps every field of an intent', async () => {
    const { tasks } = repositories()
    const task = someTask({ externalTaskId: 'mine', callbackUrl: 'https://caller.example/hook' })
    expect(await tasks.recordIntent(task)).toEqual({ outcome: 'recorded' })
    const { lockedUntilMs, ...fields } = task
    expect(await tasks.byId(task.id)).toEqual({
      ...fields,
      state: 'creating',
      nextPollAtMs: lockedUntilMs,
      polls: 0,
      misses: 0,
      updatedAtMs: task.createdAtMs,
    })
  })

  it('records one of fifty parallel creates with the same external id', async () => {
    const { tasks } = repositories()
    const outcomes = await Promise.all(
      Array.from({ length: 50 }, () => tasks.recordIntent(someTask({ externalTaskId: 'the-one' }))),
    )
    const words = outcomes.map(({ outcome }) => outcome)
    expect(words.filter((word) => word === 'recorded')).toHaveLength(1)
    expect(words.filter((word) => word === 'external_id_taken')).toHaveLength(49)
    expect(await tasks.countByState()).toEqual({ creating: 1 })
  })

  it('keeps an external id unique over both kinds, for one owner only', async () => {
    const { tasks } = repositories()
    await tasks.recordIntent(someTask({ externalTaskId: 'mine', kind: 'text2video' }))
    const again = await tasks.recordIntent(someTask({ externalTaskId: 'mine', kind: 'multi-image2video' }))
    const other = await tasks.recordIntent(someTask({ externalTaskId: 'mine', ownerId: 'key-b' }))
    expect([again.outcome, other.outcome]).toEqual(['external_id_taken', 'recorded'])
  })

  it('has room for any number of creates without an external id', async () => {
    const { tasks } = repositories()
    const outcomes = [await tasks.recordIntent(someTask()), await tasks.recordIntent(someTask())]
    expect(outcomes).toEqual([{ outcome: 'recorded' }, { outcome: 'recorded' }])
  })

  it('lets one of fifty parallel creates with the same idempotency key through, and tells the others whose it is', async () => {
    const { tasks } = repositories()
    const creates = Array.from({ length: 50 }, () =>
      someTask({ idempotency: idempotencyClaim(), externalTaskId: 'mine' }),
    )
    const outcomes = await Promise.all(creates.map((task) => tasks.recordIntent(task)))
    const winner = creates[outcomes.findIndex(({ outcome }) => outcome === 'recorded')]
    const record = { state: 'running', fingerprint: idempotencyClaim().fingerprint, taskId: winner?.id }
    const refused = outcomes.filter(({ outcome }) => outcome !== 'recorded')
    expect(refused).toEqual(Array.from({ length: 49 }, () => ({ outcome: 'idempotency_key_taken', record })))
    expect(await tasks.countByState()).toEqual({ creating: 1 })
  })

  it('writes nothing of a create whose external id is taken, also not its idempotency key', async () => {
    const { tasks } = repositories()
    await tasks.recordIntent(someTask({ externalTaskId: 'mine' }))
    const refused = await tasks.recordIntent(someTask({ externalTaskId: 'mine', idempotency: idempotencyClaim() }))
    expect(refused).toEqual({ outcome: 'external_id_taken' })
    expect(await tasks.findIdempotency(idempotencyClaim())).toBeUndefined()
  })

  it('keeps an idempotency key to its owner and its route', async () => {
    const { tasks } = repositories()
    const claims = [
      idempotencyClaim(),
      idempotencyClaim({ ownerId: 'key-b' }),
      idempotencyClaim({ route: '/vidgen/v1/videos/multi-image2video' }),
    ]
    for (const idempotency of claims) {
      expect(await tasks.recordIntent(someTask({ idempotency }))).toEqual({ outcome: 'recorded' })
    }
    expect(await tasks.findIdempotency(idempotencyClaim({ key: 'order-8' }))).toBeUndefined()
  })

  it('stores the answer of a create byte for byte, for repeats under its key', async () => {
    const { tasks } = repositories()
    const task = someTask({ idempotency: idempotencyClaim() })
    await tasks.recordIntent(task)
    const body = '{"z":1.0,"a":12345678901234567890,"é":"\\u00e9 \\"quoted\\""}'
    await tasks.change(task.id, submitted({ answer: { status: 200, body } }))
    const record = await tasks.findIdempotency(idempotencyClaim())
    expect(record).toEqual({ state: 'done', fingerprint: idempotencyClaim().fingerprint, status: 200, body })
  })

  it('gives an idempotency key that has expired to the next create', async () => {
    const { tasks } = repositories()
    await tasks.recordIntent(someTask({ idempotency: idempotencyClaim({ expiresAtMs: START_MS + 10 }) }))
    const next = someTask({
      idempotency: idempotencyClaim({ fingerprint: '0'.repeat(64) }),
      createdAtMs: START_MS + 10,
    })
    expect(await tasks.recordIntent(next)).toEqual({ outcome: 'recorded' })
    expect(await tasks.findIdempotency(idempotencyClaim())).toEqual({
      state: 'running',
      fingerprint: '0'.repeat(64),
      taskId: next.id,
    })
  })

  it('shows nothing under an idempotency key that has expired, pruned or not', async () => {
    const { tasks } = repositories()
    await tasks.recordIntent(someTask({ idempotency: idempotencyClaim({ expiresAtMs: START_MS + 10 }) }))
    expect(await tasks.findIdempotency(idempotencyClaim({ claimedAtMs: START_MS + 9 }))).toMatchObject({
      state: 'running',
    })
    expect(await tasks.findIdempotency(idempotencyClaim({ claimedAtMs: START_MS + 10 }))).toBeUndefined()
  })

  it('frees both ids of a create that made no task', async () => {
    const { tasks } = repositories()
    const task = someTask({ externalTaskId: 'mine', idempotency: idempotencyClaim() })
    await tasks.recordIntent(task)
    await tasks.dropIntent(task.id)
    expect(await tasks.byId(task.id)).toBeUndefined()
    const again = someTask({ externalTaskId: 'mine', idempotency: idempotencyClaim() })
    expect(await tasks.recordIntent(again)).toEqual({ outcome: 'recorded' })
  })

  it('never forgets a task that its upstream has made', async () => {
    const { tasks } = repositories()
    const id = await someSubmitted(tasks)
    await tasks.dropIntent(id)
    expect(await tasks.byId(id)).toBeDefined()
  })

  it('notes which channel is asked now', async () => {
    const { tasks } = repositories()
    const task = someTask()
    await tasks.recordIntent(task)
    await tasks.assignChannel(task.id, 'vidgen-spare')
    expect(await tasks.byId(task.id)).toMatchObject({ channelId: 'vidgen-spare' })
  })
}

function describeLookups(repositories: () => Repositories): void {
  it('finds a task by the id of its upstream and by the external id of its owner', async () => {
    const { tasks } = repositories()
    const id = await someSubmitted(tasks, { externalTaskId: 'mine' }, { upstreamTaskId: 'theirs' })
    expect(await tasks.find('key-a', 'text2video', 'theirs')).toMatchObject({ id })
    expect(await tasks.find('key-a', 'text2video', 'mine')).toMatchObject({ id })
  })

  it('finds nothing for another owner, for another kind, or by our own id', async () => {
    const { tasks } = repositories()
    const id = await someSubmitted(tasks, {}, { upstreamTaskId: 'theirs' })
    expect(await tasks.find('key-b', 'text2video', 'theirs')).toBeUndefined()
    expect(await tasks.find('key-a', 'multi-image2video', 'theirs')).toBeUndefined()
    expect(await tasks.find('key-a', 'text2video', id)).toBeUndefined()
  })

  it('prefers the upstream id where one task has as external id what another has as id', async () => {
    const { tasks } = repositories()
    const byId = await someSubmitted(tasks, {}, { upstreamTaskId: 'same' })
    await someSubmitted(tasks, { externalTaskId: 'same' })
    expect(await tasks.find('key-a', 'text2video', 'same')).toMatchObject({ id: byId })
  })

  it('knows whether any owner has a task of that kind under an id', async () => {
    const { tasks } = repositories()
    await someSubmitted(tasks, { externalTaskId: 'mine' }, { upstreamTaskId: 'theirs' })
    const known = ['theirs', 'mine', 'neither'].map((id) => tasks.isKnown('text2video', id))
    expect(await Promise.all(known)).toEqual([true, true, false])
    expect(await tasks.isKnown('multi-image2video', 'mine')).toBe(false)
  })

  it("lists the owner's tasks of one kind, newest first, page by page, without those that have no id yet", async () => {
    const { tasks } = repositories()
    const ids = []
    for (let index = 0; index < 5; index += 1) {
      ids.unshift(await someSubmitted(tasks, { createdAtMs: START_MS + (index >> 1) }))
    }
    await someSubmitted(tasks, { kind: 'multi-image2video' })
    await someSubmitted(tasks, { ownerId: 'key-b' })
    await tasks.recordIntent(someTask())
    const page = async (offset: number, limit: number): Promise<string[]> =>
      (await tasks.list('key-a', 'text2video', { offset, limit })).map(({ id }) => id)
    const whole = await page(0, 500)
    expect([...whole].sort()).toEqual([...ids].sort())
    expect([whole[0], whole.slice(1, 3).sort(), whole.slice(3).sort()]).toEqual([
      ids[0],
      ids.slice(1, 3).sort(),
      ids.slice(3).sort(),
    ])
    expect([...(await page(0, 2)), ...(await page(2, 2)), ...(await page(4, 2))]).toEqual(whole)
    expect(await page(5, 2)).toEqual([])
  })

  it('gives back big integers, number spelling, key order and any text as they were', async () => {
    const { tasks } = repositories()
    const object = '{"b":1.0,"a":9223372036854775807123,"e":1e400,"a":"twice","t":"😀 \\u0001 \'\\\\ $1 {}"}'
    const id = await someSubmitted(tasks, { externalTaskId: "o'b\\r{1}" }, { object })
    expect(await tasks.find('key-a', 'text2video', "o'b\\r{1}")).toMatchObject({ id, object })
  })

  it('counts how many stand in each state', async () => {
    const { tasks } = repositories()
    expect(await tasks.countByState()).toEqual({})
    await tasks.recordIntent(someTask())
    await someSubmitted(tasks)
    await someSubmitted(tasks, {}, { state: 'succeed' })
    await someSubmitted(tasks, {}, { state: 'succeed' })
    expect(await tasks.countByState()).toEqual({ creating: 1, submitted: 1, succeed: 2 })
  })
}

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

function describeQueue(repositories: () => Repositories): void {
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

  it('claims again what was claimed and not returned, after the end of the lease', async () => {
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

  it('triggers no poll for an unknown token, or for a task that has ended', async () => {
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

  it('brings forward what a clock that was set back since has planned, and nothing else', async () => {
    const { tasks } = repositories()
    const HOUR_MS = 3_600_000
    const soon = await someSubmitted(tasks, {}, { nextPollAtMs: START_MS + 1000 })
    const far = await someSubmitted(tasks, {}, { nextPollAtMs: START_MS + 5 * HOUR_MS })
    const leased = await someSubmitted(tasks, {}, { nextPollAtMs: START_MS - 1000 })
    const ended = await someSubmitted(tasks, {}, { state: 'failed', nextPollAtMs: START_MS + 5 * HOUR_MS })
    expect(idsOf(await tasks.claimDue(claim({ nowMs: START_MS, lockedUntilMs: START_MS + 5 * HOUR_MS })))).toEqual([
      leased,
    ])
    const [creating, stuck] = [START_MS + 2 * HOUR_MS, START_MS + 5 * HOUR_MS].map((lockedUntilMs) =>
      someTask({ lockedUntilMs }),
    )
    for (const task of [creating, stuck]) await tasks.recordIntent(task as NewTask)
    const latest = { pollAtMs: START_MS + 2000, lockedUntilMs: START_MS + 3000 }
    await tasks.bringForward({ ...latest, createLockedUntilMs: START_MS + 2 * HOUR_MS })
    const claimed = async (nowMs: number): Promise<string[]> => idsOf(await tasks.claimDue(claim({ nowMs })))
    expect(await claimed(START_MS + 1999)).toEqual([soon])
    expect(await claimed(START_MS + 2000)).toEqual([far])
    expect(await claimed(START_MS + 3000)).toEqual([leased])
    expect((await claimed(START_MS + 2 * HOUR_MS)).filter((id) => ![soon, far, leased].includes(id)).sort()).toEqual(
      [creating?.id, stuck?.id].sort(),
    )
    expect((await tasks.byId(ended))?.nextPollAtMs).toBe(START_MS + 5 * HOUR_MS)
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

/** Empty repositories on one store; the same objects for all tests of a suite. */
export interface Repositories {
  readonly tasks: TaskRepository
  readonly callbacks: CallbackRepository
  /** What the store has of one owner's usage. */
  readonly usageOf: (ownerId: string) => Promise<readonly UsageRecord[]>
}

/** What every store of tasks does, wherever its rows lie; `repositories` is asked anew in each test. */
export function describeTaskRepository(name: string, repositories: () => Repositories): void {
  describe(`tasks in ${name}`, () => {
    describe('when a create is recorded', () => {
      describeIntents(repositories)
    })
    describe('when they are worked on', () => {
      describeQueue(repositories)
    })
    describe('when they end', () => {
      describeEnds(repositories)
    })
    describe('when they are looked for', () => {
      describeLookups(repositories)
    })
  })
}

/** What is written with the end of a task; `repositories` is asked anew in each test. */
function describeEnds(repositories: () => Repositories): void {
  const ended = (taskId: string, given: Partial<TaskChange> = {}): TaskChange => ({
    ...submitted({ from: ['submitted'], state: 'succeed', updatedAtMs: START_MS + 9_000 }),
    usage: usageRecord({ id: `task video ${taskId}`, ownerId: 'key-a', kind: 'task', units: { videos: 1 } }),
    ...given,
  })

  it('what they have used is stored with the end', async () => {
    const { tasks, usageOf } = repositories()
    const id = await someSubmitted(tasks)
    const end = ended(id)
    expect(await tasks.change(id, end)).toBe(true)
    expect(await tasks.byId(id)).toMatchObject({ state: 'succeed' })
    expect(await usageOf('key-a')).toEqual([end.usage])
  })

  it('a second end is not applied, and uses nothing', async () => {
    const { tasks, usageOf } = repositories()
    const id = await someSubmitted(tasks)
    const end = ended(id)
    await tasks.change(id, end)
    const other = usageRecord({ id: 'task video other', ownerId: 'key-a' })
    expect(await tasks.change(id, ended(id, { state: 'failed', usage: other }))).toBe(false)
    expect(await usageOf('key-a')).toEqual([end.usage])
  })

  it('usage that is stored already stays as it is', async () => {
    const { tasks, usageOf } = repositories()
    const [one, two] = [await someSubmitted(tasks), await someSubmitted(tasks)]
    const end = ended(one)
    await tasks.change(one, end)
    const again = usageRecord({ ...end.usage, cost: '77' })
    expect(await tasks.change(two, ended(two, { usage: again }))).toBe(true)
    expect(await usageOf('key-a')).toEqual([end.usage])
  })

  it('nothing of an end is stored when something of it cannot be', async () => {
    const { tasks, usageOf } = repositories()
    const [one, two] = [await someSubmitted(tasks), await someSubmitted(tasks)]
    const { upstreamTaskId = '' } = (await tasks.byId(one)) ?? {}
    await expect(tasks.change(two, ended(two, { upstreamTaskId }))).rejects.toMatchObject({ kind: 'upstream_failed' })
    expect(await tasks.byId(two)).toMatchObject({ state: 'submitted' })
    expect(await usageOf('key-a')).toEqual([])
  })
}
