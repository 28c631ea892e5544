import { describe, expect, it } from '@jest/globals'
import type { CallbackClaim, CallbackDelivery } from '../../src/tasks/callback.repository.js'
import { someSubmitted, someTask, START_MS, submitted } from '../support/task-rows.js'
import type { Repositories } from './task-repository.contract.js'

const LEASE_MS = 30_000

const claim = (given: Partial<CallbackClaim> = {}): CallbackClaim => {
  const nowMs = given.nowMs ?? START_MS + 10_000
  return {
    nowMs,
    lockedUntilMs: nowMs + LEASE_MS,
    limit: 10,
    exceptHosts: [],
    exceptOwners: [],
    exceptBearers: false,
    ...given,
  }
}

const idsOf = (rows: readonly CallbackDelivery[]): string[] => rows.map(({ webhookId }) => webhookId)

let count = 0

/** A task that calls back, with one event written; resolves with both ids. */
async function someEvent(
  { tasks }: Repositories,
  { url = 'https://caller.example/hook', dueAtMs = START_MS + 1_000, ownerId = 'key-a' } = {},
): Promise<{ readonly taskId: string; readonly webhookId: string }> {
  const webhookId = `msg_${(count += 1)}`
  const event = { webhookId, body: `{"n":${count}}`, nextAttemptAtMs: dueAtMs }
  return { webhookId, taskId: await someSubmitted(tasks, { callbackUrl: url, ownerId }, { event }) }
}

/** What every outbox does, wherever its rows lie; `repositories` is asked anew in each test. */
export function describeCallbackRepository(name: string, repositories: () => Repositories): void {
  describe(`callbacks in ${name}`, () => {
    it('writes an event with the change it is about, and keeps every field of it', async () => {
      const { tasks, callbacks } = repositories()
      const body = '{"task_id":"1","n":12345678901234567890,"x":1.0}'
      const event = { webhookId: 'msg_a', body, nextAttemptAtMs: START_MS + 1_000 }
      const url = 'https://user.caller.example:8443/hook?x=1'
      const taskId = await someSubmitted(tasks, { callbackUrl: url }, { event, updatedAtMs: START_MS + 7 })
      const delivery = {
        webhookId: 'msg_a',
        taskId,
        ownerId: 'key-a',
        url,
        body,
        attempts: 0,
        createdAtMs: START_MS + 7,
        nextAttemptAtMs: START_MS + 1_000,
      }
      expect(await callbacks.ofTask('key-a', taskId)).toEqual([delivery])
      expect(await callbacks.claimDue(claim())).toEqual([delivery])
    })

    it('writes no event for a change that was not applied, or for a task without a callback URL', async () => {
      const { tasks, callbacks } = repositories()
      const event = { webhookId: 'msg_none', body: '{}', nextAttemptAtMs: START_MS }
      const ended = await someSubmitted(tasks, { callbackUrl: 'https://caller.example' }, { state: 'failed' })
      expect(await tasks.change(ended, submitted({ from: ['submitted'], event }))).toBe(false)
      const silent = await someSubmitted(tasks, {}, { event })
      expect([...(await callbacks.ofTask('key-a', ended)), ...(await callbacks.ofTask('key-a', silent))]).toEqual([])
      expect(await callbacks.countOpen()).toEqual({ waiting: 0, exhausted: 0 })
    })

    it('undoes the change when its event cannot be written', async () => {
      const { tasks } = repositories()
      const { webhookId } = await someEvent(repositories())
      const task = someTask({ callbackUrl: 'https://caller.example' })
      await tasks.recordIntent(task)
      const event = { webhookId, body: '{}', nextAttemptAtMs: START_MS }
      await expect(tasks.change(task.id, submitted({ event }))).rejects.toThrow()
      expect(await tasks.byId(task.id)).toMatchObject({ state: 'creating' })
    })

    it('gives out what is due, the longest due first, and only once', async () => {
      const { callbacks } = repositories()
      const late = await someEvent(repositories(), { dueAtMs: START_MS + 2_000 })
      const later = await someEvent(repositories(), { dueAtMs: START_MS + 1_000 })
      const same = await someEvent(repositories(), { dueAtMs: START_MS + 2_000 })
      await someEvent(repositories(), { dueAtMs: START_MS + 10_001 })
      expect(idsOf(await callbacks.claimDue(claim()))).toEqual([later, late, same].map(({ webhookId }) => webhookId))
      expect(await callbacks.claimDue(claim())).toEqual([])
      expect(await callbacks.nextDueAtMs()).toBe(START_MS + 10_001)
    })

    it('brings forward what a clock that was set back since has planned, and nothing else', async () => {
      const { callbacks } = repositories()
      const HOUR_MS = 3_600_000
      const due = (hours: number) => someEvent(repositories(), { dueAtMs: START_MS + hours * HOUR_MS })
      const [soon, first, asked, late, leased] = [await due(0), await due(3), await due(0), await due(0), await due(0)]
      for (const [{ webhookId }, hours] of [
        [asked, 20],
        [late, 30],
      ] as const) {
        const nextAttemptAtMs = START_MS + hours * HOUR_MS
        await callbacks.recordOutcome(webhookId, { outcome: 'retry', nextAttemptAtMs, error: 'HTTP 500' })
      }
      const locked = claim({ nowMs: START_MS, lockedUntilMs: START_MS + 9 * HOUR_MS })
      const others = idsOf(await callbacks.claimDue(locked)).filter((id) => id !== leased.webhookId)
      for (const webhookId of others) {
        const outcome = { outcome: 'retry', nextAttemptAtMs: START_MS + 100, error: 'HTTP 500' } as const
        await callbacks.recordOutcome(webhookId, outcome)
      }
      const dueOf = async ({ taskId }: { taskId: string }): Promise<number | undefined> => {
        const [delivery] = await callbacks.ofTask('key-a', taskId)
        return delivery?.nextAttemptAtMs === undefined ? undefined : delivery.nextAttemptAtMs - START_MS
      }
      const latest = {
        attemptAtMs: [START_MS + 1000, START_MS + 2 * HOUR_MS],
        askedAtMs: START_MS + 24 * HOUR_MS,
        lockedUntilMs: START_MS + HOUR_MS,
        createdAtMs: START_MS + HOUR_MS,
      }
      await callbacks.bringForward(latest)
      expect(await Promise.all([soon, first, asked, late].map(dueOf))).toEqual([100, 1000, 20 * HOUR_MS, 2 * HOUR_MS])
      const claimed = idsOf(await callbacks.claimDue(claim({ nowMs: START_MS + HOUR_MS })))
      expect(claimed.sort()).toEqual([soon, first, leased].map(({ webhookId }) => webhookId).sort())
      await callbacks.bringForward({ ...latest, createdAtMs: 0 })
      expect(await dueOf(asked)).toBe(2 * HOUR_MS)
    })

    it('claims no delivery twice for ten concurrent claims, and never more than the requested number', async () => {
      const { callbacks } = repositories()
      for (let index = 0; index < 20; index += 1) await someEvent(repositories())
      const claims = await Promise.all(Array.from({ length: 10 }, () => callbacks.claimDue(claim({ limit: 3 }))))
      expect(Math.max(...claims.map((claimed) => claimed.length))).toBe(3)
      const ids = claims.flatMap(idsOf)
      expect(new Set(ids).size).toBe(ids.length)
    })

    it('passes over hosts that are busy, telling ports apart', async () => {
      const { callbacks } = repositories()
      await someEvent(repositories(), { url: 'https://busy.example/a' })
      const other = await someEvent(repositories(), { url: 'https://busy.example:8443/a' })
      expect(idsOf(await callbacks.claimDue(claim({ exceptHosts: ['busy.example'] })))).toEqual([other.webhookId])
    })

    it('passes over owners that hold their share, and over all that have bearers of their own', async () => {
      const { callbacks } = repositories()
      await someEvent(repositories(), { ownerId: 'greedy' })
      const bearer = await someEvent(repositories(), { ownerId: 'bearer:1' })
      const modest = await someEvent(repositories(), { ownerId: 'modest' })
      const others = claim({ exceptOwners: ['greedy', 'bearer'], exceptBearers: true })
      expect(idsOf(await callbacks.claimDue(others))).toEqual([modest.webhookId])
      expect(idsOf(await callbacks.claimDue(claim({ exceptOwners: ['greedy'] })))).toEqual([bearer.webhookId])
    })

    it('claims again what was claimed and not settled, after the end of the lease', async () => {
      const { callbacks } = repositories()
      const { webhookId } = await someEvent(repositories())
      await callbacks.claimDue(claim())
      const lockedUntilMs = START_MS + 10_000 + LEASE_MS
      expect(await callbacks.nextDueAtMs()).toBe(lockedUntilMs)
      expect(await callbacks.claimDue(claim({ nowMs: lockedUntilMs - 1 }))).toEqual([])
      expect(idsOf(await callbacks.claimDue(claim({ nowMs: lockedUntilMs })))).toEqual([webhookId])
    })

    it('counts attempts, says why the last one failed, and tries again when it is time', async () => {
      const { callbacks } = repositories()
      const { webhookId, taskId } = await someEvent(repositories())
      await callbacks.claimDue(claim())
      await callbacks.recordOutcome(webhookId, {
        outcome: 'retry',
        nextAttemptAtMs: START_MS + 20_000,
        error: 'HTTP 500',
      })
      const [delivery] = await callbacks.claimDue(claim({ nowMs: START_MS + 20_000 }))
      expect(delivery).toMatchObject({ webhookId, attempts: 1, lastError: 'HTTP 500' })
      await callbacks.recordOutcome(webhookId, { outcome: 'delivered', atMs: START_MS + 20_100 })
      const [delivered] = await callbacks.ofTask('key-a', taskId)
      expect(delivered).toMatchObject({ attempts: 2, deliveredAtMs: START_MS + 20_100 })
      expect(delivered).not.toHaveProperty('nextAttemptAtMs')
      expect(delivered).not.toHaveProperty('lastError')
      expect(await callbacks.nextDueAtMs()).toBeUndefined()
    })

    it('keeps what is exhausted visible, and leaves it exhausted when a late attempt fails', async () => {
      const { callbacks } = repositories()
      const { webhookId, taskId } = await someEvent(repositories())
      await callbacks.recordOutcome(webhookId, { outcome: 'exhausted', atMs: START_MS + 5, error: 'HTTP 410' })
      await callbacks.recordOutcome(webhookId, { outcome: 'retry', nextAttemptAtMs: START_MS + 6, error: 'late' })
      const [delivery] = await callbacks.ofTask('key-a', taskId)
      expect(delivery).toMatchObject({ attempts: 1, exhaustedAtMs: START_MS + 5, lastError: 'HTTP 410' })
      expect(await callbacks.countOpen()).toEqual({ waiting: 0, exhausted: 1 })
      expect(await callbacks.claimDue(claim())).toEqual([])
    })

    it('sends anew, from the first attempt on, what its owner asks for', async () => {
      const { callbacks } = repositories()
      const { webhookId, taskId } = await someEvent(repositories())
      await callbacks.recordOutcome(webhookId, { outcome: 'exhausted', atMs: START_MS, error: 'HTTP 500' })
      expect(await callbacks.redeliver('key-a', webhookId, START_MS + 9)).toBe(true)
      const [delivery] = await callbacks.ofTask('key-a', taskId)
      expect(delivery).toMatchObject({ webhookId, attempts: 0, nextAttemptAtMs: START_MS + 9 })
      expect(delivery).not.toHaveProperty('exhaustedAtMs')
      expect(idsOf(await callbacks.claimDue(claim()))).toEqual([webhookId])
    })

    it("shows and redelivers nothing of another owner's", async () => {
      const { callbacks } = repositories()
      const { webhookId, taskId } = await someEvent(repositories())
      expect(await callbacks.ofTask('key-b', taskId)).toEqual([])
      expect(await callbacks.redeliver('key-b', webhookId, START_MS)).toBe(false)
      expect(await callbacks.redeliver('key-a', 'msg_nobody', START_MS)).toBe(false)
    })

    it('shows the events of a task in the order they came about', async () => {
      const { tasks, callbacks } = repositories()
      const { taskId, webhookId } = await someEvent(repositories())
      const event = { webhookId: 'msg_000', body: '{}', nextAttemptAtMs: START_MS }
      await tasks.change(taskId, submitted({ from: ['submitted'], state: 'succeed', event }))
      expect(idsOf(await callbacks.ofTask('key-a', taskId))).toEqual([webhookId, 'msg_000'])
    })

    it('goes with its task', async () => {
      const { tasks, callbacks } = repositories()
      const { taskId } = await someEvent(repositories())
      await tasks.change(taskId, submitted({ from: ['submitted'], state: 'failed', updatedAtMs: START_MS }))
      await tasks.prune(START_MS + 1, START_MS, 10)
      expect(await callbacks.ofTask('key-a', taskId)).toEqual([])
      expect(await callbacks.countOpen()).toEqual({ waiting: 0, exhausted: 0 })
    })
  })
}
