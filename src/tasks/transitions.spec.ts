import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import type { VideoTaskStatus } from '../providers/contract.js'
import {
  failedObject,
  isCallbackToken,
  isTerminal,
  isUpstreamExternalId,
  newCallbackToken,
  type Task,
  type TaskState,
  upstreamExternalId,
  withCallersId,
} from './task.js'
import type { Reschedule, TaskChange } from './task.repository.js'
import {
  GONE,
  nextState,
  nextTransition,
  nextPollAtMs,
  NO_RECORD,
  type PollResult,
  pollAfterFailureAtMs,
  pollWithoutChannelAtMs,
  type ChangeSettings,
  TOO_LATE,
  TRANSITIONS,
  type TaskTransition,
} from './transitions.js'

const NOW_MS = 1_750_000_000_000

/** Half way: no jitter. */
const EVEN = { nowMs: NOW_MS, pollIntervalMs: 5000, chance: 0.5 }

const aged = (ageMs: number, changes: object = {}) => ({
  state: 'processing' as const,
  createdAtMs: NOW_MS - ageMs,
  polls: 0,
  ...changes,
})

describe('The next poll of a task', () => {
  it.each([
    [0, 5000],
    [59_999, 5000],
    [60_000, 15_000],
    [3_600_000, 15_000],
  ])('that is %i ms old is %i ms away', (ageMs, delayMs) => {
    expect(nextPollAtMs(aged(ageMs), EVEN) - NOW_MS).toBe(delayMs)
  })

  it('that is looked for comes soon at first, then ever later, but at least once a minute', () => {
    const delays = [0, 1, 2, 3, 5, 6, 7, 1000].map(
      (polls) => nextPollAtMs(aged(0, { state: 'unknown', polls }), EVEN) - NOW_MS,
    )
    expect(delays).toEqual([1000, 2000, 4000, 8000, 32_000, 60_000, 60_000, 60_000])
  })

  it('after failures of its channel comes ever later, but at least once a minute', () => {
    const delays = [0, 1, 2, 3, 4, 1000].map((failures) => pollAfterFailureAtMs(aged(0), failures, undefined, EVEN))
    expect(delays.map((atMs) => atMs - NOW_MS)).toEqual([5000, 10_000, 20_000, 40_000, 60_000, 60_000])
  })

  it('is not before the time its upstream asked for', () => {
    expect(pollAfterFailureAtMs(aged(0), 0, 30, EVEN) - NOW_MS).toBe(30_000)
    expect(pollAfterFailureAtMs(aged(0), 0, 1, EVEN) - NOW_MS).toBe(5000)
  })

  it('without a channel is a minute away', () => {
    expect(pollWithoutChannelAtMs(EVEN) - NOW_MS).toBe(60_000)
  })

  it('is moved by at most a fifth, either way', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), fc.nat(120_000), (chance, ageMs) => {
        const evenMs = nextPollAtMs(aged(ageMs), EVEN) - NOW_MS
        const delayMs = nextPollAtMs(aged(ageMs), { ...EVEN, chance }) - NOW_MS
        expect(delayMs).toBeGreaterThanOrEqual(evenMs * 0.8 - 1)
        expect(delayMs).toBeLessThanOrEqual(evenMs * 1.2 + 1)
      }),
    )
    expect(nextPollAtMs(aged(0), { ...EVEN, chance: 0 }) - NOW_MS).toBe(4000)
  })
})

const SETTINGS: ChangeSettings = {
  nowMs: NOW_MS,
  chance: 0.5,
  pollIntervalMs: 5000,
  reconcileMs: 600_000,
  maxAgeMs: 86_400_000,
  firstCallbackMs: 7,
  requestId: 'req_1',
}
const STATUSES: readonly VideoTaskStatus[] = ['submitted', 'processing', 'succeed', 'failed']

const isOpen = (state: TaskState): boolean => state === 'creating' || state === 'unknown'

function taskIn(state: TaskState, changes: Partial<Task> = {}): Task {
  return {
    id: 'task-1',
    kind: 'text2video',
    ownerId: 'team-a',
    channelId: 'main',
    model: 'test-video',
    state,
    externalTaskId: 'order-1',
    upstreamExternalId: 'aaaaaaaaaaaa.order-1',
    callbackUrl: 'https://receiver.example/hook',
    callbackToken: 'token',
    nextPollAtMs: NOW_MS,
    polls: 3,
    misses: 1,
    createdAtMs: NOW_MS - 30_000,
    updatedAtMs: NOW_MS - 20_000,
    deadlineAtMs: NOW_MS + 100_000,
    ...(isOpen(state) ? {} : { upstreamTaskId: '8', object: `{"task_status":"${state}"}` }),
    ...changes,
  }
}

const seen = (status: VideoTaskStatus, object = `{"task_status":"${status}"}`): PollResult => ({
  kind: 'seen',
  upstream: { id: '8', status, object, message: 'SUCCEED' },
})

function changeOf(transition: TaskTransition): TaskChange {
  if (!('change' in transition)) throw new Error('the task was only rescheduled')
  return transition.change
}

function rescheduleOf(transition: TaskTransition): Reschedule {
  if (!('reschedule' in transition)) throw new Error('the task was changed')
  return transition.reschedule
}

const OPEN_STATES = ['creating', 'unknown', 'submitted', 'processing'] as const
const MOVES = OPEN_STATES.flatMap((from) =>
  STATUSES.map((to) => ({ from, to, allowed: (TRANSITIONS[from] as readonly TaskState[]).includes(to) })),
)

describe('A task seen at its upstream', () => {
  it.each(MOVES.filter(({ allowed }) => allowed))('goes from $from to $to', ({ from, to }) => {
    const change = changeOf(nextTransition(taskIn(from), seen(to, '{"e":"aaaaaaaaaaaa.order-1","n":1.0}'), SETTINGS))
    expect(change).toMatchObject({
      from: [from],
      state: to,
      upstreamTaskId: '8',
      object: '{"e":"order-1","n":1.0}',
      polls: 0,
      misses: 0,
      updatedAtMs: NOW_MS,
      deadlineAtMs: isOpen(from) ? NOW_MS - 30_000 + 86_400_000 : NOW_MS + 100_000,
      nextPollAtMs: to === 'succeed' || to === 'failed' ? NOW_MS : NOW_MS + 5000,
    })
    // The callback reports every state but `submitted`, in the words of the query response.
    if (to === 'submitted') expect(change.event).toBeUndefined()
    else expect(change.event).toMatchObject({ body: change.object, nextAttemptAtMs: NOW_MS + 7 })
    const body = '{"code":0,"message":"SUCCEED","request_id":"req_1","data":{"e":"order-1","n":1.0}}'
    expect(change.answer).toEqual(isOpen(from) ? { status: 200, body } : undefined)
  })

  it.each(MOVES.filter(({ from, to, allowed }) => !allowed && from !== to))(
    'never goes back from $from to $to',
    ({ from, to }) => {
      expect(rescheduleOf(nextTransition(taskIn(from), seen(to, '{"late":1}'), SETTINGS))).toEqual({
        id: 'task-1',
        nextPollAtMs: NOW_MS + 5000,
        polls: 4,
        misses: 0,
      })
    },
  )

  it('in the same state is polled again, later, and a newer object of it is kept without an event', () => {
    expect(rescheduleOf(nextTransition(taskIn('processing'), seen('processing'), SETTINGS)).polls).toBe(4)
    const change = changeOf(nextTransition(taskIn('processing'), seen('processing', '{"progress":50}'), SETTINGS))
    expect(change).toMatchObject({ from: ['processing'], state: 'processing', object: '{"progress":50}', polls: 4 })
    expect([change.event, change.answer]).toEqual([undefined, undefined])
  })

  it('makes no event for a caller who gave no address', () => {
    const task = Object.fromEntries(Object.entries(taskIn('submitted')).filter(([name]) => name !== 'callbackUrl'))
    expect(changeOf(nextTransition(task as unknown as Task, seen('succeed'), SETTINGS)).event).toBeUndefined()
  })

  it('has one id per event', () => {
    const ids = ['processing', 'succeed'].map(
      (to) => changeOf(nextTransition(taskIn('submitted'), seen(to as VideoTaskStatus), SETTINGS)).event?.webhookId,
    )
    expect(ids[0]).toMatch(/^msg_[0-9a-f]{32}$/)
    expect(ids[0]).not.toBe(ids[1])
  })

  it('is polled once more when its time is up, and not later', () => {
    const task = taskIn('processing', { deadlineAtMs: NOW_MS + 1000 })
    expect(rescheduleOf(nextTransition(task, seen('processing'), SETTINGS)).nextPollAtMs).toBe(NOW_MS + 1000)
  })
})

describe('A task whose time is up', () => {
  const OVERDUE = { deadlineAtMs: NOW_MS, createdAtMs: NOW_MS - 86_400_000 }

  it.each(['submitted', 'processing'] as const)('in %s fails, whatever the upstream says or does not say', (state) => {
    const results: PollResult[] = [
      seen(state),
      { kind: 'failed', failures: 0 },
      { kind: 'unreachable' },
      { kind: 'absent' },
    ]
    for (const result of results) {
      const change = changeOf(nextTransition(taskIn(state, { ...OVERDUE, misses: 0 }), result, SETTINGS))
      expect(change).toMatchObject({ from: [state], state: 'failed', upstreamTaskId: '8' })
      expect(change.event?.body).toBe(change.object)
      expect(JSON.parse(change.object ?? '')).toEqual({
        task_status: 'failed',
        task_status_msg: TOO_LATE,
        updated_at: NOW_MS,
      })
    }
  })

  it('still ends well when it has just ended', () => {
    expect(changeOf(nextTransition(taskIn('processing', OVERDUE), seen('succeed'), SETTINGS)).state).toBe('succeed')
  })

  it.each(['creating', 'unknown'] as const)('in %s fails when its upstream could never be asked', (state) => {
    for (const result of [{ kind: 'failed', failures: 9 }, { kind: 'unreachable' }] as const) {
      expect(changeOf(nextTransition(taskIn(state, OVERDUE), result, SETTINGS)).state).toBe('failed')
    }
  })
})

describe('A task its upstream does not know', () => {
  it('fails the second time in a row', () => {
    const first = rescheduleOf(nextTransition(taskIn('processing', { misses: 0 }), { kind: 'absent' }, SETTINGS))
    expect(first).toMatchObject({ misses: 1, polls: 4 })
    const change = changeOf(nextTransition(taskIn('processing', { misses: 1 }), { kind: 'absent' }, SETTINGS))
    expect(change.state).toBe('failed')
    expect(JSON.parse(change.object ?? '')).toMatchObject({ task_status_msg: GONE })
  })

  it('is looked for with pauses that grow while its create is in doubt', () => {
    const task = taskIn('unknown', { polls: 2, misses: 2 })
    expect(rescheduleOf(nextTransition(task, { kind: 'absent' }, SETTINGS))).toMatchObject({
      nextPollAtMs: NOW_MS + 4000,
      polls: 3,
    })
  })

  it('has failed when it was looked for long enough, under an id that can be asked for', () => {
    const task = taskIn('unknown', { deadlineAtMs: NOW_MS })
    const change = changeOf(nextTransition(task, { kind: 'absent' }, SETTINGS))
    expect(change).toMatchObject({ state: 'failed', upstreamTaskId: 'task-1' })
    expect(JSON.parse(change.object ?? '')).toEqual({
      task_id: 'task-1',
      task_status: 'failed',
      task_status_msg: NO_RECORD,
      task_info: { external_task_id: 'order-1' },
      created_at: task.createdAtMs,
      updated_at: NOW_MS,
    })
    expect(change.answer?.body).toContain('"task_status":"failed"')
    expect(change.event?.body).toBe(change.object)
  })

  it('is not given up because the upstream is down when its time to be found runs out', () => {
    const task = taskIn('unknown', { deadlineAtMs: NOW_MS - 1 })
    const later = rescheduleOf(nextTransition(task, { kind: 'failed', failures: 0 }, SETTINGS))
    expect(later.nextPollAtMs).toBe(NOW_MS + 5000)
    expect(later.misses).toBe(task.misses)
  })
})

describe('A create whose process died', () => {
  it.each([{ kind: 'absent' }, { kind: 'failed', failures: 0 }, { kind: 'unreachable' }] as const)(
    'is in doubt from the first look on: $kind',
    (result) => {
      expect(changeOf(nextTransition(taskIn('creating'), result, SETTINGS))).toMatchObject({
        from: ['creating'],
        state: 'unknown',
        deadlineAtMs: NOW_MS + 600_000,
      })
    },
  )
})

const TASK: Task = {
  id: 'f'.repeat(32),
  kind: 'text2video',
  ownerId: 'team-a',
  channelId: 'main',
  model: 'test-video',
  state: 'processing',
  upstreamExternalId: 'x',
  callbackToken: 't',
  nextPollAtMs: 0,
  polls: 0,
  misses: 0,
  createdAtMs: 1000,
  updatedAtMs: 1000,
  deadlineAtMs: 2000,
}

describe('The external id an upstream is given', () => {
  it('differs between owners and tasks, and does not show the owner', () => {
    const ids = [
      upstreamExternalId('team-a', 'order-1', 't1'),
      upstreamExternalId('team-b', 'order-1', 't1'),
      upstreamExternalId('team-a', undefined, 't1'),
      upstreamExternalId('team-a', undefined, 't2'),
    ]
    expect(new Set(ids).size).toBe(4)
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{12}\.(order-1|t1|t2)$/)
    expect(ids.every(isUpstreamExternalId)).toBe(true)
    expect(['order-1', '831200000000000001', '0123456789a.x'].some(isUpstreamExternalId)).toBe(false)
  })

  it('is replaced in answers by the callers own, everything else staying as it was', () => {
    const ours = upstreamExternalId('team-a', 'order-1', 't1')
    const object = `{ "n":12345678901234567890, "f":1.0,"task_info" : {"external_task_id":"${ours}","again":"${ours}"}}`
    expect(withCallersId(object, ours, 'order-1')).toBe(
      '{ "n":12345678901234567890, "f":1.0,"task_info" : {"external_task_id":"order-1","again":"order-1"}}',
    )
    expect(withCallersId(object, ours, undefined)).toContain('"external_task_id":""')
  })

  it('may hold whatever a caller may choose', () => {
    const externalIds = fc.stringMatching(/^[A-Za-z0-9_.:-]{1,128}$/)
    fc.assert(
      fc.property(externalIds, (externalId) => {
        const ours = upstreamExternalId('team-a', externalId, 't1')
        const object = JSON.stringify({ task_info: { external_task_id: ours }, other: `${ours}x` })
        expect(JSON.parse(withCallersId(object, ours, externalId))).toEqual({
          task_info: { external_task_id: externalId },
          other: `${ours}x`,
        })
      }),
    )
  })
})

describe('A callback token', () => {
  it('is new each time, and nothing else is taken for one', () => {
    const tokens = Array.from({ length: 100 }, newCallbackToken)
    expect(new Set(tokens).size).toBe(100)
    expect(tokens.every(isCallbackToken)).toBe(true)
    for (const text of ['', 'a', `${'a'.repeat(31)}/`, 'a'.repeat(33), `${'a'.repeat(31)}%`]) {
      expect(isCallbackToken(text)).toBe(false)
    }
  })
})

describe('The object of a task that the gateway ends', () => {
  it('is the last one with the ending in it', () => {
    const object = '{"task_id":"8","task_status":"processing","big":12345678901234567890,"created_at":1000,"f":1.0}'
    expect(failedObject({ ...TASK, object, upstreamTaskId: '8' }, 'Too "late".', 1500)).toBe(
      '{"task_id":"8","task_status":"failed","big":12345678901234567890,"created_at":1000,"f":1.0,' +
        '"task_status_msg":"Too \\"late\\".","updated_at":1500}',
    )
  })

  it.each([undefined, '{"a":1,"a":2}', '[]', 'oops'])('is a new one when the last was %s', (object) => {
    const text = failedObject(object === undefined ? TASK : { ...TASK, object, upstreamTaskId: '8' }, 'Lost.', 1500)
    expect(JSON.parse(text)).toEqual({
      task_id: object === undefined ? TASK.id : '8',
      task_status: 'failed',
      task_status_msg: 'Lost.',
      task_info: { external_task_id: '' },
      created_at: 1000,
      updated_at: 1500,
    })
  })
})

const STATES: readonly TaskState[] = ['creating', 'unknown', 'submitted', 'processing', 'succeed', 'failed']

/** Written out again: rows are from, columns to, in the order of `STATES`. */
const MAY: Readonly<Record<TaskState, string>> = {
  creating: '.xxxxx',
  unknown: '..xxxx',
  submitted: '...xxx',
  processing: '....xx',
  succeed: '......',
  failed: '......',
}

const PAIRS = STATES.flatMap((from) => STATES.map((to, column) => ({ from, to, may: MAY[from][column] === 'x' })))

describe('The states of a task', () => {
  it.each(PAIRS)('$from to $to: $may', ({ from, to, may }) => {
    expect(nextState(from, to)).toBe(may ? to : undefined)
  })

  it('only go forward: what was left is never entered again', () => {
    for (const { from, to, may } of PAIRS) {
      if (may) expect(nextState(to, from)).toBeUndefined()
    }
  })

  it('end nowhere but in succeed and failed', () => {
    for (const state of STATES) expect(MAY[state].includes('x')).toBe(!isTerminal(state))
  })
})
