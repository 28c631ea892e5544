import { afterEach, describe, expect, it } from '@jest/globals'
import { eventually } from '../../test/support/eventually.js'
import {
  counts,
  make,
  pass,
  passRound,
  passUntil,
  startedLab,
  stopLabs,
  taskOf,
} from '../../test/support/running-labs.js'
import { callOf, taskLab, taskWorld, videoChannel } from '../../test/support/task-lab.js'
import { GatewayError } from '../core/gateway-error.js'

const LOST = new GatewayError('upstream_failed', 'Lost.', { attempt: { phase: 'sent' } })
const DOWN = new GatewayError('upstream_failed', 'Down.', { attempt: { phase: 'unsent', channelFault: true } })

afterEach(stopLabs)

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
    ['whose read throws what nobody foresaw', new TypeError('a bug')],
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
    const quick = lab.order({ model: 'quick-video', route: lab.router.video('quick-video', { keyId: 'team-a' }) })
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
    dying.alarm.wake()
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
