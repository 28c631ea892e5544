import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { pino } from 'pino'
import { eventually } from '../../test/support/eventually.js'
import {
  CALLBACK_URL,
  callOf,
  counts,
  make,
  ManualClock,
  pass,
  passRound,
  passUntil,
  startedLab,
  stopLabs,
  taskLab,
  type TaskLab,
  taskOf,
  taskWorld,
  videoChannel,
} from '../../test/support/task-lab.js'
import { GatewayError } from '../core/errors.js'
import { TaskRetention } from './poller.js'
import { StoreCounts } from './task-metrics.js'
import type { Task } from './task.js'
import { NO_RECORD, TOO_LATE } from './transitions.js'
import { ClockWatch, WakeTimer } from './background-work.js'

describe('The poller of tasks', () => {
  const LOST = new GatewayError('upstream_failed', 'Lost.', { attempt: { phase: 'sent' } })
  const DOWN = new GatewayError('upstream_failed', 'Down.', { attempt: { phase: 'unsent', channelError: true } })

  afterEach(stopLabs)

  describe('A task in the background', () => {
    it('is followed to its end although no caller asks for it, and its caller is told of each change', async () => {
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

    it('is polled at once when its upstream calls back, which no stranger can', async () => {
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

  describe('A clock', () => {
    const HOUR_MS = 3_600_000

    it('that is set back by hours keeps no task waiting, leased or not', async () => {
      const lab = startedLab()
      await make(lab, 2)
      const nowMs = lab.clock.nowMs()
      const claim = { exceptChannels: [], limit: 1, nowMs: nowMs + 60_000, lockedUntilMs: nowMs + 60_000 }
      // By a process that died with it.
      expect(await lab.store.tasks.claimDue(claim)).toHaveLength(1)
      lab.upstream.move('succeed')
      await passRound(lab, -5 * HOUR_MS)
      const setAtMs = lab.clock.nowMs()
      await passUntil(lab, 'succeed', 2, 5000)
      expect(lab.clock.nowMs() - setAtMs).toBeLessThan(300_000)
    })

    it('that was set back before the start is found out', async () => {
      const before = startedLab()
      await make(before, 1)
      await stopLabs()
      before.clock.advance(-5 * HOUR_MS)
      before.upstream.move('succeed')
      const lab = startedLab({ world: before })
      await passUntil(lab, 'succeed', 1, 5000)
    })

    it('that is set forward over the deadline lets a task be asked once more before it fails', async () => {
      const lab = startedLab()
      await make(lab, 2)
      lab.upstream.move('processing')
      await passUntil(lab, 'processing', 2)
      const { length } = lab.upstream.reads
      pass(lab, 48 * HOUR_MS)
      await eventually(() => lab.upstream.reads.length === length + 2)
      expect(await counts(lab)).toEqual({ processing: 2 })
      lab.upstream.move('succeed')
      await passUntil(lab, 'succeed', 2)
    })

    it('that is set forward over the deadline fails a task that is still not done when it is asked once more', async () => {
      const lab = startedLab()
      await make(lab, 1)
      lab.upstream.move('processing')
      await passUntil(lab, 'processing', 1)
      const { length } = lab.upstream.reads
      pass(lab, 48 * HOUR_MS)
      await passUntil(lab, 'failed', 1)
      expect(lab.upstream.reads.length).toBeGreaterThanOrEqual(length + 2)
      expect((await taskOf(lab, 'order-0'))?.object).toContain(TOO_LATE)
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
      expect(await lab.engine.find('text2video', task.upstreamTaskId ?? '', callOf())).toMatchObject({
        state: 'failed',
      })
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

  describe('Many tasks that are due at once', () => {
    it('are asked for at the pace of the configuration, so that requests have room', async () => {
      const lab = startedLab({ sections: { tasks: { pollsPerSecond: 100, pollsPerChannel: 10 } } })
      await make(lab, 40)
      lab.upstream.move('succeed')
      const startedAtMs = performance.now()
      await passUntil(lab, 'succeed', 40)
      // Four claims of ten, and a tenth of a second after each but the last.
      expect(performance.now() - startedAtMs).toBeGreaterThanOrEqual(290)
    })
  })

  describe('One bad task among many', () => {
    it.each([
      ['whose read throws an unforeseen error', new TypeError('a bug')],
      ['whose upstream fails', DOWN],
    ])('%s does not stop the rest', async (_which, error) => {
      const lab = startedLab()
      await make(lab, 50)
      lab.upstream.readFault = (id) => (id === '830007' ? error : undefined)
      lab.upstream.move('succeed')
      await passUntil(lab, 'succeed', 49)
      expect(await counts(lab)).toEqual({ succeed: 49, submitted: 1 })
    })

    it('that hangs takes one slot and no more', async () => {
      const lab = startedLab({ sections: { tasks: { pollsPerChannel: 2 } } })
      await make(lab, 1)
      const release = lab.upstream.holdReads()
      pass(lab, 6000)
      await eventually(() => lab.upstream.readsUnderWay === 1)
      // Reads that begin from now on are answered.
      lab.upstream.holdReads()()
      await make(lab, 30)
      lab.upstream.move('succeed')
      await passUntil(lab, 'succeed', 29)
      expect(lab.upstream.readsUnderWay).toBe(1)
      release()
      await passUntil(lab, 'succeed', 30)
    })

    it('that cannot be written is put off like one whose upstream fails', async () => {
      const lab = startedLab()
      lab.upstream.createFaults.push({ when: 'after', error: LOST })
      await make(lab, 3)
      // The lost one turns up under an id that another task has.
      const lost = lab.upstream.made[0]
      if (lost !== undefined) lab.upstream.made[0] = { ...lost, id: '830001' }
      lab.upstream.move('succeed')
      await passUntil(lab, 'succeed', 2)
      await eventually(async () => ((await taskOf(lab, 'order-0'))?.polls ?? 0) > 0)
      expect(await counts(lab)).toEqual({ succeed: 2, unknown: 1 })
    })
  })

  describe('Five thousand tasks that are due at once', () => {
    it('are all polled, on each channel only so many at once, and the event loop turns all the while', async () => {
      const world = taskWorld()
      const channels = [videoChannel('one'), videoChannel('two', { models: ['other-video'] })]
      const lab = taskLab({ world, channels })
      const nowMs = world.clock.nowMs()
      for (let number = 0; number < 5000; number++) {
        const id = `task-${number}`
        world.upstream.made.push({ id, externalId: id, channelId: number % 2 === 0 ? 'one' : 'two', status: 'succeed' })
        await world.store.tasks.recordIntent({
          id,
          kind: 'text2video',
          ownerId: 'team-a',
          channelId: number % 2 === 0 ? 'one' : 'two',
          model: 'test-video',
          upstreamExternalId: id,
          callbackToken: id,
          createdAtMs: nowMs - 1000,
          deadlineAtMs: nowMs + 1_000_000,
          lockedUntilMs: nowMs - 1,
        })
      }
      let turns = 0
      const turning = setInterval(() => turns++, 1)
      lab.poller.start()
      while ((await counts(lab)).succeed !== 5000) await new Promise((resolve) => setTimeout(resolve, 5))
      clearInterval(turning)
      await lab.poller.stop()
      expect(world.upstream.reads).toHaveLength(5000)
      expect(world.upstream.mostReadsAtOnce).toBeLessThanOrEqual(32)
      expect(turns).toBeGreaterThan(10)
    })
  })

  describe('A channel', () => {
    it('never gets more polls at once than it may, while others go on', async () => {
      const channels = [videoChannel('slow'), videoChannel('quick', { models: ['quick-video'] })]
      const lab = startedLab({ channels, sections: { tasks: { pollsPerChannel: 3 } } })
      const release = lab.upstream.holdReads()
      await make(lab, 1)
      await passRound(lab, 6000)
      // One slot is taken; three more tasks are claimed for the other two.
      await eventually(() => lab.upstream.readsUnderWay === 1)
      await make(lab, 21)
      await passRound(lab, 6000)
      await eventually(() => lab.upstream.readsUnderWay === 3)
      await passRound(lab, 6000)
      expect(lab.upstream.readsUnderWay).toBe(3)
      lab.upstream.holdReads()()
      const quick = lab.order({
        model: 'quick-video',
        route: lab.router.route('video', 'quick-video', { keyId: 'team-a' }),
      })
      for (let number = 0; number < 10; number++) await lab.engine.create(quick, callOf())
      lab.upstream.move('succeed')
      await passUntil(lab, 'succeed', 10)
      expect(lab.upstream.readsUnderWay).toBe(3)
      release()
      await passUntil(lab, 'succeed', 31)
      expect(lab.upstream.mostReadsAtOnce).toBeLessThanOrEqual(6)
    })
  })

  describe('Two replicas', () => {
    it('share the work: no task is polled twice', async () => {
      const world = taskWorld()
      const first = startedLab({ world })
      startedLab({ world })
      await make(first, 200)
      world.upstream.move('succeed')
      await passUntil(first, 'succeed', 200)
      expect(world.upstream.reads).toHaveLength(200)
      expect(new Set(world.upstream.reads).size).toBe(200)
    })
  })

  describe('A shutdown in the middle of polls', () => {
    it('ends at once and leaves every task to the other replicas', async () => {
      const world = taskWorld()
      const dying = taskLab({ world, sections: { tasks: { pollsPerChannel: 4 } } })
      const release = world.upstream.holdReads()
      await make(dying, 1)
      world.clock.advance(6000)
      dying.poller.start()
      await eventually(() => world.upstream.readsUnderWay === 1)
      await make(dying, 20)
      world.clock.advance(6000)
      dying.wakeTimer.wake()
      // Four are claimed for the three slots that are left.
      await eventually(() => world.upstream.readsUnderWay === 4)
      await dying.poller.stop()
      expect(world.upstream.reads).toHaveLength(4)
      expect(await world.store.tasks.nextDueAtMs()).toBeLessThanOrEqual(world.clock.nowMs())
      expect(await counts(dying)).toEqual({ submitted: 20 })
      release()
      world.upstream.move('succeed')
      const heir = startedLab({ world })
      await eventually(async () => (await counts(heir)).succeed === 20)
    })

    it('leaves nothing running, even when it comes before the start', async () => {
      const lab = taskLab()
      await make(lab, 1)
      await lab.poller.stop()
      lab.poller.start()
      lab.clock.advance(6000)
      await lab.poller.stop()
      expect(lab.upstream.reads).toEqual([])
    })
  })

  describe('A store that is lost for a while', () => {
    it('stops nothing for good', async () => {
      const lab = startedLab()
      await make(lab, 5)
      lab.upstream.move('succeed')
      lab.store.setReachable(false)
      await passRound(lab, 6000)
      await expect(lab.store.tasks.nextDueAtMs()).rejects.toBeInstanceOf(GatewayError)
      lab.store.setReachable(true)
      await passUntil(lab, 'succeed', 5)
    })

    it('while an answer is under way: the task is polled again when its lease is over', async () => {
      const lab = startedLab()
      await make(lab, 1)
      const release = lab.upstream.holdReads()
      pass(lab, 6000)
      await eventually(() => lab.upstream.readsUnderWay === 1)
      lab.upstream.move('succeed')
      lab.store.setReachable(false)
      release()
      await eventually(() => lab.upstream.readsUnderWay === 0)
      lab.store.setReachable(true)
      expect(await counts(lab)).toEqual({ submitted: 1 })
      await passUntil(lab, 'succeed', 1)
      expect(lab.upstream.reads).toHaveLength(2)
    })
  })
})

describe('task retention', () => {
  const DAY_MS = 86_400_000

  const running: TaskRetention[] = []

  afterEach(async () => {
    jest.useRealTimers()
    for (const retention of running.splice(0)) await retention.stop()
  })

  function retentionOf({ store, config, clock }: TaskLab): TaskRetention {
    const retention = new TaskRetention(store.tasks, config, clock, pino({ level: 'silent' }))
    running.push(retention)
    return retention
  }

  async function ended(lab: TaskLab, count: number, key = 'key'): Promise<void> {
    lab.upstream.firstStatus = 'succeed'
    for (let number = 0; number < count; number++) {
      await lab.engine.create(lab.order({ idempotencyKey: `${key}-${number}` }), callOf())
    }
  }

  const count = async (lab: TaskLab): Promise<number> => (await lab.store.tasks.countByState()).succeed ?? 0

  describe('Ended tasks', () => {
    it('are forgotten after thirty days, however many there are, and not before', async () => {
      const lab = taskLab()
      await ended(lab, 1200)
      lab.clock.advance(30 * DAY_MS)
      await ended(lab, 1, 'late')
      const early = retentionOf(lab)
      early.start()
      await early.stop()
      expect(await count(lab)).toBe(1201)
      lab.clock.advance(1)
      retentionOf(lab).start()
      await eventually(async () => (await count(lab)) === 1)
    })

    it('are looked for every hour', async () => {
      const lab = taskLab({ sections: { tasks: { retentionMs: 1 } } })
      jest.useFakeTimers({ doNotFake: ['setImmediate', 'performance', 'nextTick', 'queueMicrotask'] })
      retentionOf(lab).start()
      await ended(lab, 1)
      lab.clock.advance(2)
      jest.advanceTimersByTime(3_599_999)
      expect(await count(lab)).toBe(1)
      jest.advanceTimersByTime(1)
      await eventually(async () => (await count(lab)) === 0)
    })

    it('stay when the store is away, until the next time', async () => {
      const lab = taskLab()
      await ended(lab, 1)
      lab.clock.advance(31 * DAY_MS)
      lab.store.setReachable(false)
      const unlucky = retentionOf(lab)
      unlucky.start()
      await unlucky.stop()
      lab.store.setReachable(true)
      expect(await count(lab)).toBe(1)
      retentionOf(lab).start()
      await eventually(async () => (await count(lab)) === 0)
    })
  })

  describe('Tasks that have not ended', () => {
    it('are never forgotten', async () => {
      const lab = taskLab()
      await lab.engine.create(lab.order(), callOf())
      lab.clock.advance(1000 * DAY_MS)
      const retention = retentionOf(lab)
      retention.start()
      await retention.stop()
      expect(await lab.store.tasks.countByState()).toEqual({ submitted: 1 })
    })
  })
})

const HOUR_MS = 3_600_000

interface Sleep {
  isOver: boolean
  readonly end: Promise<void>
}

function sleep(wakeTimer: WakeTimer, longestMs: number, shortestMs = 0): Sleep {
  const state: { isOver: boolean } = { isOver: false }
  const end = wakeTimer.sleep(longestMs, shortestMs).then(() => {
    state.isOver = true
  })
  return Object.assign(state, { end })
}

/** Far more turns than a zero timer takes. */
async function turns(): Promise<void> {
  const untilMs = performance.now() + 20
  while (performance.now() < untilMs) await nextTurn()
}

describe('A sleep', () => {
  it('ends by itself after its longest time', async () => {
    await sleep(new WakeTimer(new ManualClock()), 1).end
  })

  it('ends when a wake-up is scheduled for now, and not when it is scheduled for later', async () => {
    const clock = new ManualClock()
    const wakeTimer = new WakeTimer(clock)
    const first = sleep(wakeTimer, HOUR_MS)
    wakeTimer.scheduleAt(clock.nowMs() + HOUR_MS)
    await turns()
    expect(first.isOver).toBe(false)
    wakeTimer.scheduleAt(clock.nowMs())
    await first.end
  })

  it('ends at once when a wake-up was scheduled before it began, but only the next one does', async () => {
    const clock = new ManualClock()
    const wakeTimer = new WakeTimer(clock)
    wakeTimer.scheduleAt(clock.nowMs())
    await sleep(wakeTimer, HOUR_MS).end
    const second = sleep(wakeTimer, HOUR_MS)
    await turns()
    expect(second.isOver).toBe(false)
    wakeTimer.switchOff()
    await second.end
  })

  it('keeps a scheduled wake-up until that time has come', async () => {
    const clock = new ManualClock()
    const wakeTimer = new WakeTimer(clock)
    wakeTimer.scheduleAt(clock.nowMs() + 1000)
    await sleep(wakeTimer, 1).end
    clock.advance(1000)
    await sleep(wakeTimer, HOUR_MS).end
  })

  it('is never shorter than its shortest time, unless it is woken', async () => {
    const clock = new ManualClock()
    const wakeTimer = new WakeTimer(clock)
    wakeTimer.scheduleAt(clock.nowMs())
    const resting = sleep(wakeTimer, HOUR_MS, HOUR_MS)
    await turns()
    expect(resting.isOver).toBe(false)
    wakeTimer.wake()
    await resting.end
  })

  it('keeps its pace even when it is woken, but not when the timer is switched off', async () => {
    const wakeTimer = new WakeTimer(new ManualClock())
    let isOver = false
    const resting = wakeTimer.sleep(0, 0, HOUR_MS).then(() => {
      isOver = true
    })
    wakeTimer.wake()
    await turns()
    expect(isOver).toBe(false)
    wakeTimer.switchOff()
    await resting
  })

  it('follows one that was woken in its full length', async () => {
    const wakeTimer = new WakeTimer(new ManualClock())
    wakeTimer.wake()
    await sleep(wakeTimer, HOUR_MS).end
    const second = sleep(wakeTimer, HOUR_MS)
    await turns()
    expect(second.isOver).toBe(false)
    wakeTimer.wake()
    await second.end
  })

  it('is not taken any more after the timer was switched off', async () => {
    const wakeTimer = new WakeTimer(new ManualClock())
    wakeTimer.switchOff()
    await sleep(wakeTimer, HOUR_MS, HOUR_MS).end
    await sleep(wakeTimer, HOUR_MS, HOUR_MS).end
  })
})

describe('Planned times', () => {
  beforeEach(() => {
    jest.useFakeTimers()
  })

  afterEach(() => {
    jest.useRealTimers()
  })

  const clock = new ManualClock()
  const pass = (milliseconds: number): void => {
    clock.advance(milliseconds)
    jest.advanceTimersByTime(milliseconds)
  }

  it('are looked after at the start and once a minute: a clock may have been set back before, or elsewhere', () => {
    const watch = new ClockWatch(clock)
    const looks = [0, 59_999, 1, 30_000, 30_000].map((milliseconds) => {
      pass(milliseconds)
      return watch.look()
    })
    const due = { isSetBack: false }
    expect(looks).toEqual([due, undefined, due, undefined, due])
  })

  it('are looked after at once when the clock is set back by more than a moment, and only then', () => {
    const watch = new ClockWatch(clock)
    watch.look()
    pass(1_000)
    clock.advance(-4_999)
    expect(watch.look()).toBeUndefined()
    clock.advance(-5_001)
    expect(watch.look()).toEqual({ isSetBack: true })
    expect(watch.look()).toBeUndefined()
    clock.advance(3_600_000)
    expect(watch.look()).toBeUndefined()
  })
})

/** A store whose counts resolve on request. */
class ManualStore {
  asked = 0
  private readonly waiting: { resolve: (count: number) => void; reject: (error: Error) => void }[] = []

  readonly count = (): Promise<number> => {
    this.asked++
    return new Promise((resolve, reject) => this.waiting.push({ resolve, reject }))
  }

  response(count: number): void {
    this.waiting.shift()?.resolve(count)
  }

  fail(): void {
    this.waiting.shift()?.reject(new Error('away'))
  }
}

describe('Counts of the store', () => {
  beforeEach(() => {
    jest.useFakeTimers()
  })

  afterEach(() => {
    jest.useRealTimers()
  })

  it('are waited for by the caller that asks first, and by those who ask meanwhile', async () => {
    const store = new ManualStore()
    const counts = new StoreCounts(store.count)
    const told = Promise.all([counts.latest(), counts.latest()])
    store.response(7)
    expect(await told).toEqual([7, 7])
    expect(store.asked).toBe(1)
  })

  it('are asked for anew only every 15 seconds', async () => {
    const store = new ManualStore()
    const counts = new StoreCounts(store.count)
    const first = counts.latest()
    store.response(7)
    await first
    await jest.advanceTimersByTimeAsync(14_999)
    expect([await counts.latest(), store.asked]).toEqual([7, 1])
    await jest.advanceTimersByTimeAsync(1)
    const next = counts.latest()
    store.response(8)
    expect([await next, store.asked]).toEqual([8, 2])
  })

  it('of a store that hangs hold no caller up for longer than half a second, and it is not asked again', async () => {
    const store = new ManualStore()
    const counts = new StoreCounts(store.count)
    const early = counts.latest()
    await jest.advanceTimersByTimeAsync(500)
    expect(await early).toBeUndefined()
    await jest.advanceTimersByTimeAsync(60_000)
    const late = counts.latest()
    await jest.advanceTimersByTimeAsync(500)
    expect([await late, store.asked]).toEqual([undefined, 1])
    store.response(7)
    expect(await counts.latest()).toBe(7)
    const next = counts.latest()
    store.response(8)
    expect([await next, store.asked]).toEqual([8, 2])
  })

  it('stay as they were while the store fails, but are not shown for longer than a minute', async () => {
    const store = new ManualStore()
    const counts = new StoreCounts(store.count)
    const first = counts.latest()
    store.response(7)
    await first
    for (const expected of [7, 7, 7, undefined]) {
      await jest.advanceTimersByTimeAsync(15_000)
      const told = counts.latest()
      store.fail()
      expect(await told).toBe(expected)
    }
    expect(store.asked).toBe(5)
  })
})
