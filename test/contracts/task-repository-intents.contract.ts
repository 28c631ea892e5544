import { expect, it } from '@jest/globals'
import type { IdempotencyClaim } from '../../src/tasks/task.repository.js'
import { DAY_MS, someSubmitted, someTask, START_MS, submitted } from '../support/task-rows.js'
import type { Repositories } from './task-repository.contract.js'

const idempotencyClaim = (given: Partial<IdempotencyClaim> = {}): IdempotencyClaim => ({
  ownerId: 'key-a',
  route: '/vidgen/v1/videos/text2video',
  key: 'order-7',
  fingerprint: 'f'.repeat(64),
  claimedAtMs: START_MS,
  expiresAtMs: START_MS + DAY_MS,
  ...given,
})

export function describeIntents(repositories: () => Repositories): void {
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
