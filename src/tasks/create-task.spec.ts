import { setImmediate as nextTurn } from 'node:timers/promises'
import { beforeEach, describe, expect, it } from '@jest/globals'
import { eventually } from '../../test/support/eventually.js'
import { type MemoryRepositories, memoryRepositories } from '../../test/support/memory-tasks.js'
import { failureOf } from '../../test/support/raw-upstream.js'
import {
  CALLBACK_URL,
  callOf,
  taskLab,
  type TaskLab,
  TEAM_A,
  TEAM_B,
  videoChannel,
} from '../../test/support/task-lab.js'
import { CollectedUsage, someSubmitted, submitted } from '../../test/support/task-rows.js'
import { type ErrorKind, type FailedAttempt, GatewayError } from '../core/errors.js'
import { RequestContext, clientDisconnected } from '../core/request-context.js'
import type { SettledTask } from '../core/usage-record.js'
import { KeyedQueue } from './background-work.js'
import { endedTask, TaskRecorder, TaskWatchers } from './task-updates.js'
import type { Task } from './task.js'
import type { TaskChange, TaskRepository } from './task.repository.js'

const attemptError = (kind: ErrorKind, attempt: FailedAttempt, details: object = {}): GatewayError =>
  new GatewayError(kind, 'What the upstream did.', { attempt, ...details })

const LOST = attemptError('upstream_failed', { phase: 'sent', channelError: true })
const REFUSED = attemptError('invalid_request', { phase: 'answered' }, { code: 'content_policy_violation' })
const BUSY = attemptError('rate_limited', { phase: 'answered', channelError: true })
const UNSENT = attemptError('upstream_failed', { phase: 'unsent', channelError: true })

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
        return provider.create('text2video', [Buffer.from(JSON.stringify(ids))], context)
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
    ['the caller leaves', clientDisconnected()],
    ['the reason is unknown', new GatewayError('upstream_failed', 'Something.')],
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

  it('by an unforeseen error is in doubt as well', async () => {
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
        const made = await provider.create('text2video', [Buffer.from(JSON.stringify(ids))], context)
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
    lab.wakeTimer.wake()
    await eventually(() => lab.store.tasks.claims > claims)
    expect(lab.upstream.reads).toEqual([])
    lab.clock.advance(1)
    lab.wakeTimer.wake()
    await eventually(async () => (await lab.store.tasks.countByState()).submitted === 1)
    await lab.poller.stop()
    expect(lab.upstream.creates).toHaveLength(1)
  })
})

describe('A create that takes longer than any caller waits for', () => {
  it('is answered all the same when it was given up for lost and not found meanwhile', async () => {
    const lab = taskLab()
    lab.poller.start()
    lab.upstream.hidden.add('830000')
    const release = lab.upstream.holdCreates()
    const create = lab.engine.create(lab.order({ externalTaskId: 'order-1' }), callOf())
    await eventually(() => lab.upstream.creates.length === 1)
    lab.clock.advance(600_000)
    lab.wakeTimer.wake()
    await eventually(async () => (await lab.store.tasks.countByState()).unknown === 1)
    await lab.poller.stop()
    release()
    expect((await create).status).toBe(200)
    expect(await lab.store.tasks.countByState()).toEqual({ submitted: 1 })
  })
})

const dataOf = (body: string): unknown => (JSON.parse(body) as { data: unknown }).data

describe('A create', () => {
  it('is answered with the upstreams object under the callers own external id', async () => {
    const lab = taskLab()
    const call = callOf()
    const response = await lab.engine.create(lab.order({ externalTaskId: 'order-1' }), call)
    expect(response).toEqual({
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
    const response = await lab.engine.create(lab.order(), callOf())
    expect(dataOf(response.body)).toMatchObject({ task_info: { external_task_id: '' } })
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

  it('is made, but without callbacks, as the gateway cannot follow it without a key of its caller', async () => {
    const lab = taskLab({ channels: CHANNELS, sections: { server: { publicUrl: 'https://gateway.example' } } })
    const refused = lab.engine.create(lab.order({ callbackUrl: CALLBACK_URL }, OWN), callOf(OWN))
    expect((await failureOf(refused)).details).toMatchObject({ param: 'callback_url', code: 'unsupported_parameter' })
    expect(await lab.store.tasks.countByState()).toEqual({})
    await lab.engine.create(lab.order({}, OWN), callOf(OWN))
    expect(lab.upstream.creates).toEqual([{ channelId: 'own', externalId: expect.any(String) as unknown }])
  })
})

describe('A caller who leaves', () => {
  it('before the upstream is asked leaves nothing behind', async () => {
    const lab = taskLab()
    const call = callOf()
    call.disconnect.abort()
    expect((await failureOf(lab.engine.create(lab.order(), call))).kind).toBe('caller_left')
    expect([lab.upstream.creates, await lab.store.tasks.countByState()]).toEqual([[], {}])
  })
})

describe('A shutdown', () => {
  it('waits until the last create has written down what came of it', async () => {
    const lab = taskLab()
    lab.upstream.createFaults.push({ when: 'after', error: clientDisconnected() })
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

describe('A create under an idempotency key', () => {
  const KEYED = { idempotencyKey: 'key-1', externalTaskId: 'order-1' }
  const OTHER_BODY = { ...KEYED, fingerprint: 'b'.repeat(64) }
  const LOST_ANSWER = new GatewayError('upstream_failed', 'Lost.', { attempt: { phase: 'sent' } })

  const create = (lab: TaskLab, order: object = KEYED) => lab.engine.create(lab.order(order), callOf())

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

  it('is told to come back while it is unknown what came of the first, then answered from what was found', async () => {
    const lab = taskLab()
    lab.upstream.createFaults.push({ when: 'after', error: LOST_ANSWER })
    await expect(create(lab)).rejects.toMatchObject({ kind: 'upstream_failed' })
    await expect(create(lab)).rejects.toMatchObject({ kind: 'idempotency_running' })
    const task = await lab.engine.find('text2video', 'order-1', callOf())
    const response = await create(lab)
    expect(response.replayed).toBe(true)
    expect(response.body).toMatch(/^\{"code":0,"message":"SUCCEED","request_id":"[\w-]+","data":\{/)
    expect(response.body).toContain(`"data":${task?.object ?? 'nothing'}}`)
    expect(await create(lab)).toEqual(response)
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
    const elsewhere = new RequestContext('req', 'POST', '/vidgen/v1/videos/multi-image2video', 0)
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

const task = (object: string | undefined, state: Task['state'] = 'succeed'): Task => ({
  id: 'tsk_1',
  kind: 'text2video',
  ownerId: 'team-a',
  channelId: 'main',
  model: 'vidgen-v1',
  state,
  upstreamExternalId: 'x',
  callbackToken: 't',
  nextPollAtMs: 0,
  polls: 0,
  misses: 0,
  createdAtMs: 1000,
  updatedAtMs: 5000,
  deadlineAtMs: 0,
  ...(object === undefined ? {} : { object }),
})

describe('A task that has ended', () => {
  it('leaves who pays for what', () => {
    expect(endedTask(task('{}'))).toEqual({
      id: 'video tsk_1',
      ownerId: 'team-a',
      usageClass: 'video',
      route: '/vidgen/v1/videos/text2video',
      model: 'vidgen-v1',
      channelId: 'main',
      outcome: 'ok',
      usage: { units: { videos: 1 }, estimated: false },
      durationMs: 4000,
    })
    expect(endedTask(task('{}', 'failed'))).toMatchObject({
      outcome: 'upstream_failed',
      usage: { units: { videos: 0 } },
    })
  })

  it.each<[string | undefined, object]>([
    [
      '{"final_unit_deduction":"2","final_balance_deduction":{"quota":"0.28","list_price":"0.30"}}',
      { final_unit_deduction: 2, final_balance_deduction: { quota: 0.28, list_price: 0.3 } },
    ],
    ['{"final_unit_deduction":2.50}', { final_unit_deduction: 2.5 }],
    ['{"final_unit_deduction":"a lot","final_balance_deduction":7}', {}],
    ['{"final_balance_deduction":null}', {}],
    ['[]', {}],
    ['null', {}],
    ['{"cut', {}],
    [undefined, {}],
  ])('shows what its upstream took off the account, whatever its object holds: %s', (object, reported) => {
    expect(endedTask(task(object)).usage).toEqual({ units: { ...reported, videos: 1 }, estimated: false })
  })
})

const WIDTH = 4

interface Item {
  readonly id: string
  readonly key: string
}

/** Work that ends on request, and the queue's reports of free room meanwhile. */
class Works {
  readonly running: { readonly id: string; readonly end: () => void }[] = []
  rooms = 0
  ends = 0
  readonly queue = new KeyedQueue<Item>({
    keyOf: ({ key }) => key,
    concurrency: () => WIDTH,
    isBusy: (running, waiting) => waiting > 0 || running * 2 > WIDTH,
    run: ({ id }) =>
      new Promise((resolve) => {
        this.running.push({ id, end: resolve })
      }),
    onEnd: (hasMadeRoom) => {
      this.ends++
      if (hasMadeRoom) this.rooms++
    },
  })

  add(count: number, key = 'main'): void {
    for (let number = 0; number < count; number++) this.queue.add({ id: `${key}-${number}`, key })
  }

  async endOne(): Promise<void> {
    this.running.shift()?.end()
    await nextTurn()
  }
}

describe('The concurrency of a key', () => {
  it('limits running items; waiting items start as others end', async () => {
    const works = new Works()
    works.add(6)
    expect(works.running.map(({ id }) => id)).toEqual(['main-0', 'main-1', 'main-2', 'main-3'])
    await works.endOne()
    expect(works.running.map(({ id }) => id)).toEqual(['main-1', 'main-2', 'main-3', 'main-4'])
  })

  it('does not affect another key', () => {
    const works = new Works()
    works.add(6)
    works.add(1, 'other')
    expect(works.running.at(-1)?.id).toBe('other-0')
    expect(works.queue.busy()).toEqual(['main'])
  })

  it('is busy as long as the options decide so; the end of it is reported once', async () => {
    const works = new Works()
    works.add(5)
    for (const [busy, rooms] of [
      [true, 0],
      [true, 0],
      [false, 1],
      [false, 1],
      [false, 1],
    ] as const) {
      await works.endOne()
      expect([works.queue.busy().length > 0, works.rooms]).toEqual([busy, rooms])
    }
    expect(works.ends).toBe(5)
  })

  it('gives back waiting items, and resolves idle when the running ones have ended', async () => {
    const works = new Works()
    works.add(5)
    expect(works.queue.takeWaiting().map(({ id }) => id)).toEqual(['main-4'])
    expect(works.queue.size).toBe(WIDTH)
    let isIdle = false
    const idle = works.queue.idle().then(() => {
      isIdle = true
    })
    for (let left = WIDTH; left > 0; left--) {
      expect(isIdle).toBe(false)
      await works.endOne()
    }
    await idle
    await works.queue.idle()
    expect(works.queue.takeWaiting()).toEqual([])
    expect(works.queue.size).toBe(0)
  })
})

describe('task recorder', () => {
  let store: MemoryRepositories
  let usage: CollectedUsage
  let wakes: number

  beforeEach(() => {
    store = memoryRepositories()
    usage = new CollectedUsage()
    wakes = 0
  })

  const recorderOf = (tasks: TaskRepository = store.tasks): TaskRecorder =>
    new TaskRecorder(tasks, new TaskWatchers(60_000), { wake: () => wakes++ }, usage)

  async function someTask(): Promise<Task> {
    const task = await store.tasks.byId(await someSubmitted(store.tasks))
    if (task === undefined) throw new Error('there is no task')
    return task
  }

  const end = ({ upstreamTaskId = '' }: Task, given: Partial<TaskChange> = {}): TaskChange =>
    submitted({ from: ['submitted'], state: 'succeed', upstreamTaskId, ...given })

  const paid = async (): Promise<string[]> => (await store.usageOf('team-a')).map(({ id }) => id)

  describe('The end of a task', () => {
    it('is written with what the task has used, which then counts', async () => {
      const task = await someTask()
      expect(await recorderOf().record(task, end(task))).toMatchObject({ state: 'succeed' })
      expect(await paid()).toEqual([`task video ${task.id}`])
      expect(usage.settled).toMatchObject([{ id: `video ${task.id}`, outcome: 'ok' }])
    })

    it('that another process wrote before uses nothing, and counts for that process alone', async () => {
      const task = await someTask()
      const [one, two] = [recorderOf(), recorderOf()]
      await one.record(task, end(task))
      expect(await two.record(task, end(task, { state: 'failed' }))).toBeUndefined()
      expect(await paid()).toHaveLength(1)
      expect([usage.settled.length, two.endedTasks.failed]).toEqual([1, 0])
    })

    it('is not written while the store is away, nor is what was used', async () => {
      const task = await someTask()
      store.setReachable(false)
      await expect(recorderOf().record(task, end(task))).rejects.toMatchObject({ kind: 'overloaded' })
      store.setReachable(true)
      expect([await paid(), usage.tasks]).toEqual([[], []])
    })

    it('is written without a record that no store takes, which goes the way of all others', async () => {
      const task = await someTask()
      const changes: TaskChange[] = []
      const change = (id: string, wanted: TaskChange): Promise<boolean> => {
        changes.push(wanted)
        if (wanted.usage !== undefined) return Promise.reject(Object.assign(new Error('no text'), { code: '22021' }))
        return store.tasks.change(id, wanted)
      }
      const picky = Object.assign(Object.create(store.tasks) as TaskRepository, { change })
      expect(await recorderOf(picky).record(task, end(task))).toMatchObject({ state: 'succeed' })
      expect(changes).toHaveLength(2)
      expect([await paid(), usage.settled]).toEqual([[], []])
      expect(usage.tasks).toMatchObject([{ id: `video ${task.id}` }])
    })

    it.each<[string, (settled: SettledTask) => SettledTask | undefined, number]>([
      ['usage is not stored', (settled) => ({ ...settled, record: undefined }), 1],
      ['nothing can be made of it', () => undefined, 0],
    ])('is written where %s', async (_why, change, counted) => {
      const task = await someTask()
      const settle = usage.settleTask.bind(usage)
      usage.settleTask = (ended) => change(settle(ended)) as SettledTask
      expect(await recorderOf().record(task, end(task))).toMatchObject({ state: 'succeed' })
      expect([await paid(), usage.settled.length]).toEqual([[], counted])
    })
  })

  describe('A change that is no end', () => {
    it('uses nothing', async () => {
      const task = await someTask()
      const recorder = recorderOf()
      expect(await recorder.record(task, end(task, { state: 'processing' }))).toMatchObject({ state: 'processing' })
      expect([usage.tasks, await paid(), recorder.endedTasks]).toEqual([[], [], { succeed: 0, failed: 0 }])
    })
  })
})
