import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { unused, UnusedRouter } from '../../test/support/unused-router.js'
import { eventually } from '../../test/support/eventually.js'
import { MemoryBackgroundResponses } from '../../test/support/memory-background-responses.js'
import { attemptOf } from '../../test/support/raw-upstream.js'
import { ManualClock } from '../../test/support/task-lab.js'
import { CollectedUsage } from '../../test/support/task-rows.js'
import { GatewayError } from '../core/errors.js'
import type { RequestContext } from '../core/request-context.js'
import type { EndedResponse, ResponseProgress } from '../dialects/response-state.js'
import { createLogging } from '../observability/logger.js'
import type { AttemptContext, KeptResponsesProvider } from '../providers/contract.js'
import { type PinnedRoute } from '../routing/router.js'
import { Database } from '../storage/database.js'
import { BackgroundBilling, pauseMs } from './background-billing.js'
import type { BackgroundResponseRow } from './background-responses.js'
import { BackgroundWatcher } from './background-watcher.js'

const HOUR_MS = 3_600_000
const STORE_AWAY = new GatewayError('overloaded', 'The database cannot be reached at the moment.')
const DOWN = new GatewayError('upstream_failed', 'Down.', { attempt: { phase: 'unsent', channelError: true } })

/** A store that is open. */
class OpenDatabase extends Database {
  run = unused
  transaction = unused
  open = unused

  override whenOpen(listener: () => void): void {
    listener()
  }
}

/** What upstreams know of the responses of a test; what is not said runs. */
class Upstream {
  readonly progress = new Map<string, ResponseProgress | Error>()
  readonly asked: string[] = []
  underWay = 0
  mostAtOnce = 0
  private gate: Promise<void> | undefined

  /** From now on questions are not answered until the returned function is called. */
  hold(): () => void {
    let release: () => void = () => undefined
    this.gate = new Promise((resolve) => {
      release = () => {
        this.gate = undefined
        resolve()
      }
    })
    return release
  }

  async answer(id: string): Promise<ResponseProgress> {
    this.asked.push(id)
    this.mostAtOnce = Math.max(this.mostAtOnce, ++this.underWay)
    try {
      await this.gate
      const progress = this.progress.get(id) ?? 'running'
      if (progress instanceof Error) throw progress
      return progress
    } finally {
      this.underWay--
    }
  }
}

class StandInRouter extends UnusedRouter {
  channels = ['main']

  constructor(private readonly upstream: Upstream) {
    super()
  }

  override responseChannels(): readonly PinnedRoute<KeptResponsesProvider>[] {
    return this.channels.map((channelId) => ({
      channelId,
      modelClass: 'chat',
      options: {},
      attempt: <Result>(
        call: RequestContext,
        _policy: object,
        run: (provider: KeptResponsesProvider, context: AttemptContext) => Promise<Result>,
      ) => run(this.provider, attemptOf(call, channelId) as AttemptContext),
    }))
  }

  private get provider(): KeptResponsesProvider {
    return {
      create: unused,
      countInputTokens: unused,
      read: unused,
      events: unused,
      inputItems: unused,
      cancel: unused,
      delete: unused,
      progress: (id) => this.upstream.answer(id),
    }
  }
}

/** What replicas share. */
const worldOf = () => ({ rows: new MemoryBackgroundResponses(), upstream: new Upstream(), clock: new ManualClock() })

const watchers: BackgroundWatcher[] = []

/** One process that watches. */
function replica({ rows, upstream, clock } = worldOf()) {
  const lines: string[] = []
  const { logger } = createLogging('info', { write: (line) => lines.push(line) })
  const usage = new CollectedUsage()
  const router = new StandInRouter(upstream)
  const marker = { write: () => Promise.resolve(), remove: () => Promise.resolve() }
  const billing = new BackgroundBilling(rows, usage, clock, marker, logger)
  const watcher = new BackgroundWatcher(new OpenDatabase(), rows, billing, router, clock, logger)
  watchers.push(watcher)
  watcher.onModuleInit()
  const wake = (): Promise<void> => billing.hasten('team-a', 'resp_none')
  return {
    rows,
    upstream,
    clock,
    usage,
    router,
    billing,
    watcher,
    log: () => lines.map((line) => JSON.parse(line) as Record<string, unknown>),
    begin: (id: string, more: Partial<BackgroundResponseRow> = {}) =>
      billing.begin({ ownerId: 'team-a', id, channelId: 'main', model: 'gpt-5-mini', route: '/v1/responses', ...more }),
    /** Moves the time, and wakes the watcher. */
    pass: async (milliseconds: number): Promise<void> => {
      clock.advance(milliseconds)
      await wake()
    },
  }
}

type Replica = ReturnType<typeof replica>

const rowOf = ({ rows }: Replica, id: string) => rows.rows.get(`team-a\n${id}`)

/** Moves the time to the next poll of a response and waits until that has been made, and planned anew or ended. */
async function passPoll(lab: Replica, id: string): Promise<void> {
  const { nextPollAtMs, polls } = rowOf(lab, id) ?? unused()
  await lab.pass(Math.max(0, nextPollAtMs - lab.clock.nowMs()))
  await eventually(() => {
    const row = rowOf(lab, id)
    return row === undefined || (row.polls > polls && row.lockedUntilMs === 0)
  })
}

const ended = (responseId: string, more: Partial<EndedResponse> = {}): EndedResponse => ({
  responseId,
  itemIds: [`msg_of_${responseId}`],
  outcome: 'ok',
  usage: { units: { input_tokens: 7, output_tokens: 5 }, estimated: false },
  ...more,
})

describe('The watcher of responses in the background', () => {
  afterEach(async () => {
    for (const watcher of watchers.splice(0)) await watcher.beforeApplicationShutdown()
  })

  it('asks for a response until it has ended, and records what it has used, once', async () => {
    const lab = replica()
    await lab.begin('resp_1')
    await passPoll(lab, 'resp_1')
    expect(lab.usage.tasks).toEqual([])
    lab.upstream.progress.set('resp_1', ended('resp_1'))
    await passPoll(lab, 'resp_1')
    expect(lab.usage.settled).toEqual([
      {
        id: 'response main resp_1',
        ownerId: 'team-a',
        usageClass: 'chat',
        route: '/v1/responses',
        model: 'gpt-5-mini',
        channelId: 'main',
        outcome: 'ok',
        usage: { units: { input_tokens: 7, output_tokens: 5 }, estimated: false },
        durationMs: expect.any(Number),
      },
    ])
    expect([rowOf(lab, 'resp_1'), lab.rows.pinned.get('resp_1')]).toEqual([undefined, ['msg_of_resp_1']])
    await lab.pass(HOUR_MS)
    expect(lab.upstream.asked).toHaveLength(2)
  })

  it('asks at growing intervals, up to a minute', () => {
    const pauses = Array.from({ length: 8 }, (_, polls) => pauseMs(polls, 0.5))
    expect(pauses).toEqual([2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000])
    expect([pauseMs(0, 0), pauseMs(9, 0.999_999)]).toEqual([1600, 72_000])
  })

  it('does not ask before the time', async () => {
    const lab = replica()
    await lab.begin('resp_1')
    await lab.pass(1500)
    await lab.begin('resp_2')
    await passPoll(lab, 'resp_1')
    expect(lab.upstream.asked).toEqual(['resp_1'])
  })

  it('asks for no more than eight at once on one channel, and for all of them', async () => {
    const lab = replica()
    const release = lab.upstream.hold()
    const ids = Array.from({ length: 20 }, (_, index) => `resp_${index}`)
    for (const id of ids) await lab.begin(id)
    for (const id of ids) lab.upstream.progress.set(id, ended(id))
    await lab.pass(10_000)
    await eventually(() => lab.upstream.underWay === 8)
    release()
    await eventually(() => lab.usage.settled.length === ids.length)
    expect([lab.upstream.mostAtOnce, lab.rows.rows.size]).toEqual([8, 0])
  })

  it('leaves what another replica is asking for to it, until its lease has run out', async () => {
    const world = worldOf()
    const [one, other] = [replica(world), replica(world)]
    const release = world.upstream.hold()
    await one.begin('resp_1')
    await one.pass(3000)
    await eventually(() => world.upstream.underWay === 1)
    await other.pass(50_000)
    expect(world.upstream.asked).toHaveLength(1)
    await other.pass(11_000)
    await eventually(() => world.upstream.underWay === 2)
    world.upstream.progress.set('resp_1', ended('resp_1'))
    release()
    await eventually(() => world.upstream.underWay === 0 && world.rows.rows.size === 0)
    await Promise.all([one, other].map(({ watcher }) => watcher.beforeApplicationShutdown()))
    expect([...one.usage.settled, ...other.usage.settled]).toHaveLength(1)
    expect(world.rows.records.size).toBe(1)
  })

  it('bills a response once although the store was lost between its answer and its record', async () => {
    const lab = replica()
    await lab.begin('resp_1')
    lab.upstream.progress.set('resp_1', ended('resp_1'))
    lab.rows.failureOfEnd = STORE_AWAY
    await lab.pass(3000)
    await eventually(() => lab.upstream.asked.length === 1 && lab.upstream.underWay === 0)
    expect(lab.usage.tasks).toEqual([])
    lab.rows.failureOfEnd = undefined
    // The lease of a minute runs out.
    await lab.pass(61_000)
    await eventually(() => lab.usage.settled.length === 1)
    expect([lab.upstream.asked.length, lab.rows.records.size]).toEqual([2, 1])
  })

  it('bills a response whose items cannot be pinned', async () => {
    const lab = replica()
    await lab.begin('resp_1')
    lab.rows.failureOfPins = new Error('too many parameters')
    lab.upstream.progress.set('resp_1', ended('resp_1'))
    await passPoll(lab, 'resp_1')
    expect([lab.usage.settled.length, lab.rows.records.size, lab.rows.pinned.size]).toEqual([1, 1, 0])
    const line = { level: 40, msg: 'the items of a background response could not be kept', responseId: 'resp_1' }
    expect(lab.log()).toMatchObject([line])
  })

  it('asks at growing intervals where an end cannot be written down for another reason than an outage', async () => {
    const lab = replica()
    await lab.begin('resp_1')
    lab.rows.failureOfEnd = new Error('a fault')
    lab.upstream.progress.set('resp_1', ended('resp_1'))
    for (let round = 1; round <= 3; round++) {
      await passPoll(lab, 'resp_1')
      expect(rowOf(lab, 'resp_1')?.polls).toBe(round)
    }
    expect((rowOf(lab, 'resp_1')?.nextPollAtMs ?? 0) - lab.clock.nowMs()).toBeGreaterThan(10_000)
    lab.rows.failureOfEnd = undefined
    await passPoll(lab, 'resp_1')
    expect(lab.usage.settled).toHaveLength(1)
  })

  it('goes on when the store is back', async () => {
    const lab = replica()
    await lab.begin('resp_1')
    lab.rows.failure = STORE_AWAY
    await lab.pass(3000)
    await eventually(() => lab.log().length > 0)
    lab.rows.failure = undefined
    lab.upstream.progress.set('resp_1', ended('resp_1'))
    await eventually(() => lab.usage.settled.length === 1)
    expect(lab.log().filter(({ msg }) => msg === 'background responses wait for the store')).toHaveLength(1)
  })

  it('asks again while an upstream fails, however long', async () => {
    const lab = replica()
    await lab.begin('resp_1')
    lab.upstream.progress.set('resp_1', DOWN)
    lab.clock.advance(49 * HOUR_MS)
    await passPoll(lab, 'resp_1')
    await passPoll(lab, 'resp_1')
    expect(lab.usage.tasks).toEqual([])
    lab.upstream.progress.set('resp_1', ended('resp_1'))
    await passPoll(lab, 'resp_1')
    expect(lab.usage.settled).toHaveLength(1)
  })

  it.each<[string, Partial<EndedResponse>]>([
    ['failed', { outcome: 'upstream_failed', usage: undefined }],
    ['was cancelled after it had used something', { outcome: 'caller_left' }],
    ['is incomplete', {}],
  ])('records what its upstream says of one that %s', async (_what, more) => {
    const lab = replica()
    await lab.begin('resp_1')
    const end = ended('resp_1', more)
    lab.upstream.progress.set('resp_1', end)
    await passPoll(lab, 'resp_1')
    expect(lab.usage.settled).toMatchObject([{ outcome: end.outcome, usage: end.usage }])
  })

  it.each([
    ['its upstream does not know', 'unknown' as const, 61_000, 'the upstream does not know it'],
    ['has not ended after 48 hours', 'running' as const, 48 * HOUR_MS, 'it has not ended within 48 hours'],
    ['could not be asked for in 30 days', DOWN, 720 * HOUR_MS, 'its upstream could not be asked for 30 days'],
  ])('records one that %s without figures, and says so', async (_what, progress, ageMs, reason) => {
    const lab = replica()
    await lab.begin('resp_1')
    lab.upstream.progress.set('resp_1', progress)
    await passPoll(lab, 'resp_1')
    expect(lab.usage.tasks).toEqual([])
    lab.clock.advance(ageMs)
    await passPoll(lab, 'resp_1')
    expect(lab.usage.settled).toMatchObject([{ outcome: 'upstream_failed', usage: undefined }])
    const msg = 'a background response is recorded without figures'
    await eventually(() => lab.log().length > 0)
    expect(lab.log()).toMatchObject([{ level: 40, msg, reason, responseId: 'resp_1', keyId: 'team-a' }])
  })

  it('asks again where an upstream does not know a response for once: one of its servers may lag behind', async () => {
    const lab = replica()
    await lab.begin('resp_1')
    lab.clock.advance(61_000)
    // A failure between two of them says nothing, and the response itself that it is known.
    for (const progress of ['unknown', 'running', 'unknown'] as const) {
      lab.upstream.progress.set('resp_1', progress)
      await passPoll(lab, 'resp_1')
    }
    expect([lab.usage.tasks, rowOf(lab, 'resp_1')?.misses]).toEqual([[], 1])
    lab.upstream.progress.set('resp_1', DOWN)
    await passPoll(lab, 'resp_1')
    expect(rowOf(lab, 'resp_1')?.misses).toBe(1)
    lab.upstream.progress.set('resp_1', ended('resp_1'))
    await passPoll(lab, 'resp_1')
    expect(lab.usage.settled).toMatchObject([{ outcome: 'ok' }])
  })

  it('waits for a channel that is not configured any more, and says so once', async () => {
    const lab = replica()
    await lab.begin('resp_1')
    lab.router.channels = []
    for (let round = 0; round < 3; round++) await passPoll(lab, 'resp_1')
    expect([lab.upstream.asked, lab.usage.tasks]).toEqual([[], []])
    const msg = 'background responses wait for a channel that is not configured'
    expect(lab.log()).toMatchObject([{ level: 40, msg, channelId: 'main' }])
    lab.router.channels = ['main']
    lab.upstream.progress.set('resp_1', ended('resp_1'))
    await passPoll(lab, 'resp_1')
    expect(lab.usage.settled).toHaveLength(1)
  })

  it('says again that a channel is missing which was there meanwhile', async () => {
    const lab = replica()
    await lab.begin('resp_1')
    for (const channels of [[], ['main'], []]) {
      lab.router.channels = channels
      await passPoll(lab, 'resp_1')
    }
    const line = { msg: 'background responses wait for a channel that is not configured', channelId: 'main' }
    expect(lab.log()).toMatchObject([line, line])
  })

  it('that stops gives back what it was asking for, at once', async () => {
    const world = worldOf()
    const [one, other] = [replica(world), replica(world)]
    world.upstream.hold()
    const due = async (first: number, last: number): Promise<void> => {
      for (let index = first; index <= last; index++) await one.begin(`resp_${index}`)
      world.clock.advance(3000)
      await one.billing.hasten('team-a', 'resp_none')
    }
    const leased = (): number => [...world.rows.rows.values()].filter(({ lockedUntilMs }) => lockedUntilMs > 0).length
    await due(1, 5)
    await eventually(() => world.upstream.underWay === 5)
    await due(6, 12)
    // Eight are asked for, and four wait for these.
    await eventually(() => leased() === 12)
    await one.watcher.beforeApplicationShutdown()
    expect([...world.rows.rows.values()].map(({ lockedUntilMs, polls }) => [lockedUntilMs, polls])).toEqual(
      Array.from({ length: 12 }, () => [0, 0]),
    )
    await other.pass(0)
    await eventually(() => world.upstream.asked.length > 8)
  })

  it('plans anew after the clock was set back', async () => {
    const lab = replica()
    lab.clock.advance(HOUR_MS)
    await lab.begin('resp_1')
    await passPoll(lab, 'resp_1')
    lab.clock.advance(-HOUR_MS)
    await lab.pass(0)
    await eventually(() => (rowOf(lab, 'resp_1')?.nextPollAtMs ?? Infinity) < lab.clock.nowMs() + 180_000)
  })

  describe('between two looks into the store', () => {
    const STEP_MS = 100

    beforeEach(() => {
      jest.useFakeTimers()
    })
    afterEach(() => {
      jest.useRealTimers()
    })

    /** Lets time pass on the clock and for timers alike; nothing else wakes the watcher. */
    async function elapse({ clock }: Replica, milliseconds: number): Promise<void> {
      for (let passedMs = 0; passedMs < milliseconds; passedMs += STEP_MS) {
        clock.advance(STEP_MS)
        await jest.advanceTimersByTimeAsync(STEP_MS)
      }
    }

    it('asks as soon as a poll is due, the first and the next', async () => {
      const lab = replica()
      await elapse(lab, STEP_MS)
      await lab.begin('resp_1')
      for (const polls of [1, 2]) {
        // It is planned anew when the watcher has looked for what is due next.
        const release = lab.upstream.hold()
        // The longest that the pause before it can be.
        await elapse(lab, pauseMs(polls - 1, 1) + STEP_MS)
        expect(lab.upstream.asked).toHaveLength(polls)
        release()
      }
    })

    it('goes on as soon as a busy channel has room', async () => {
      const lab = replica()
      const release = lab.upstream.hold()
      const ids = Array.from({ length: 20 }, (_, index) => `resp_${index}`)
      for (const id of ids) await lab.begin(id)
      for (const id of ids) lab.upstream.progress.set(id, ended(id))
      await elapse(lab, 3000)
      expect([lab.upstream.underWay, lab.upstream.asked.length]).toEqual([8, 8])
      release()
      await elapse(lab, STEP_MS)
      expect(lab.usage.settled).toHaveLength(ids.length)
    })
  })
})
