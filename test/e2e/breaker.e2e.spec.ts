import { afterEach, describe, expect, it, jest } from '@jest/globals'
import { type P1Simulator, startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import { ChannelHealth } from '../../src/routing/circuit-breaker.js'
import { eventually } from '../support/eventually.js'
import { ask, startChat, channelOf, readAndLeave, SHORT_TIMEOUTS, times } from '../support/failing-calls.js'
import { CHAT_PATH, chatText, startGateway, TEST_KEY, type TestGateway } from '../support/gateway.js'
import { p1Channel, type P1Gateway, UPSTREAM_KEY, withLab, withP1Gateway } from '../support/provider-gateways.js'
import { RealtimeProbe } from '../support/realtime-probe.js'
import { startVidgenGateway } from '../support/task-gateways.js'
import { VideoCaller } from '../support/video-caller.js'

const breaking = (failures: number, coolDownMs = 200): object => ({ sections: { breaker: { failures, coolDownMs } } })
const TWO = { withSecond: true }

const served = ({ simulator, second }: P1Gateway): number[] => [simulator.requests.length, second.requests.length]
const isHalfOpen = ({ gateway }: P1Gateway) => eventually(() => channelOf(gateway, 'first').state === 'half_open')

describe('The breaker of a channel', () => {
  it('opens after so many failures in a row, cools down longer each time, and is closed by a success', async () => {
    // Longer than three calls take on a busy machine.
    await withP1Gateway({ ...TWO, ...breaking(2, 1_000) }, async (lab) => {
      const { gateway, simulator } = lab
      for (const fault of ['500', '500'] as const) {
        simulator.queueFault(fault)
        expect((await ask(gateway)).status).toBe(200)
      }
      expect((await ask(gateway)).status).toBe(200)
      expect(served(lab)).toEqual([2, 3])
      expect(channelOf(gateway, 'first')).toMatchObject({ state: 'open', consecutiveFailures: 2, waiting: 0 })
      await isHalfOpen(lab)
      simulator.queueFault('500')
      await ask(gateway)
      expect(channelOf(gateway, 'first').state).toBe('open')
      expect(channelOf(gateway, 'first').openForMs).toBeGreaterThan(1_000)
      await isHalfOpen(lab)
      await ask(gateway)
      expect(channelOf(gateway, 'first')).toMatchObject({ state: 'closed', consecutiveFailures: 0, openForMs: 0 })
      expect(simulator.requests).toHaveLength(4)
    })
  })

  it('lets one of many concurrent calls probe the channel while the others go elsewhere', async () => {
    await withP1Gateway({ ...TWO, ...breaking(1) }, async (lab) => {
      lab.simulator.queueFault('500')
      await ask(lab.gateway)
      await isHalfOpen(lab)
      lab.simulator.queueFault({ kind: 'delay', ms: 2_000 })
      const answers = await Promise.all(times(8, () => ask(lab.gateway)))
      expect(answers.every(({ status }) => status === 200)).toBe(true)
      expect(served(lab)).toEqual([2, 8])
      expect(channelOf(lab.gateway, 'first').state).toBe('closed')
    })
  })

  it('can be probed again at once when the caller of the probe leaves', async () => {
    await withP1Gateway({ ...TWO, ...breaking(1) }, async (lab) => {
      const { gateway, simulator } = lab
      simulator.queueFault('500')
      await ask(gateway)
      await isHalfOpen(lab)
      simulator.queueFault('hang')
      const arrived = simulator.nextRequest()
      const leave = startChat(gateway)
      await arrived
      expect((await ask(gateway)).status).toBe(200)
      expect(served(lab)).toEqual([2, 2])
      leave()
      await isHalfOpen(lab)
      await ask(gateway)
      expect(served(lab)).toEqual([3, 2])
      expect(channelOf(gateway, 'first').state).toBe('closed')
    })
  })

  it('is open for as long as a busy upstream says, whatever was under way succeeds', async () => {
    await withP1Gateway({ ...TWO, ...breaking(9) }, async ({ gateway, simulator }) => {
      simulator.queueFault({ kind: 'delay', ms: 200 })
      simulator.queueFault('429')
      const arrived = simulator.nextRequest()
      const slow = ask(gateway)
      await arrived
      expect((await ask(gateway)).status).toBe(200)
      expect((await slow).status).toBe(200)
      expect(channelOf(gateway, 'first').state).toBe('open')
      const { openForMs } = channelOf(gateway, 'first')
      expect(openForMs).toBeGreaterThan(1000)
      expect(openForMs).toBeLessThanOrEqual(2000)
    })
  })

  it('never opens by faults of callers, or by callers who leave', async () => {
    await withP1Gateway({ ...TWO, ...breaking(1) }, async (lab) => {
      const { gateway, simulator } = lab
      for (const fault of ['400', '404', '413', '422'] as const) {
        simulator.queueFault(fault)
        expect((await ask(gateway)).status).toBeGreaterThanOrEqual(400)
      }
      for (const fault of ['hang', 'stall'] as const) {
        simulator.queueFault(fault)
        const [arrived, aborted] = [simulator.nextRequest(), simulator.nextAbort()]
        const leave = startChat(gateway)
        await arrived
        leave()
        await aborted
      }
      await readAndLeave(gateway.url, { path: CHAT_PATH, body: chatText('#chunks=50 #hold=4', { stream: true }) })
      await simulator.idle()
      expect(channelOf(gateway, 'first')).toMatchObject({ state: 'closed', consecutiveFailures: 0 })
      await eventually(() => channelOf(gateway, 'first').waiting === 0)
      expect(served(lab)).toEqual([7, 0])
    })
  })

  it('never keeps callers from the last channel', async () => {
    await withP1Gateway(breaking(1, 60_000), async ({ gateway, simulator }) => {
      for (const fault of ['500', 'html'] as const) {
        simulator.queueFault(fault)
        expect((await ask(gateway)).status).toBe(502)
      }
      expect((await ask(gateway)).status).toBe(200)
      expect(channelOf(gateway, 'first').state).toBe('closed')
    })
  })
})

describe('An answer that breaks off after its first byte', () => {
  it.each(['cut', 'cleancut', 'errorframe', 'stall'] as const)(
    'counts as a failure of its channel (%s)',
    async (fault) => {
      await withP1Gateway({ ...TWO, ...breaking(2, 60_000), channel: SHORT_TIMEOUTS }, async (lab) => {
        for (const failures of [1, 2]) {
          lab.simulator.queueFault(fault)
          const answer = await ask(lab.gateway, '#chunks=20', { stream: true })
          expect(answer).toMatchObject({ status: 200, complete: true })
          expect(channelOf(lab.gateway, 'first').consecutiveFailures).toBe(failures)
        }
        await ask(lab.gateway)
        expect(served(lab)).toEqual([2, 1])
      })
    },
  )

  it('opens the breaker again at once when it was the probe', async () => {
    await withP1Gateway({ ...TWO, ...breaking(3) }, async (lab) => {
      for (const fault of ['500', '500', '500'] as const) {
        lab.simulator.queueFault(fault)
        await ask(lab.gateway)
      }
      await isHalfOpen(lab)
      lab.simulator.queueFault('cut')
      await ask(lab.gateway, '#chunks=20', { stream: true })
      expect(channelOf(lab.gateway, 'first')).toMatchObject({ state: 'open', consecutiveFailures: 4 })
    })
  })
})

const IDS = ['first', 'second'] as const

/** For what takes some calls, or some attempts on a busy machine; less than a test has, whose own limit says nothing. */
const PATIENCE_MS = 120_000

interface Pair {
  readonly gateway: TestGateway
  readonly first: P1Simulator
  readonly second: P1Simulator
}

/** Two channels of the same priority, or the second behind the first; further sections as in gateway.yaml. */
async function withPair(secondPriority: number, sections: object, run: (pair: Pair) => Promise<void>): Promise<void> {
  const [first, second] = [
    await startP1Simulator({ apiKey: UPSTREAM_KEY }),
    await startP1Simulator({ apiKey: UPSTREAM_KEY }),
  ]
  const channels = [p1Channel('first', first), p1Channel('second', second, { priority: secondPriority })]
  const gateway = await startGateway({ channels, sections })
  try {
    await run({ gateway, first, second })
  } finally {
    await gateway.close()
    for (const simulator of [first, second]) await simulator.close().catch(() => undefined)
  }
}

/** Both have answered, so that it is known how fast they are. */
const bothKnown = (gateway: TestGateway): Promise<void> =>
  eventually(async () => {
    await ask(gateway)
    return IDS.every((id) => channelOf(gateway, id).latencyMs !== undefined)
  })

describe('A hundred calls on a channel that dies', () => {
  it('are repeated elsewhere no oftener than the budget allows', async () => {
    await withPair(1, {}, async ({ gateway, first, second }) => {
      const statuses: number[] = []
      for (const fault of times(100, () => 'hang' as const)) {
        first.queueFault(fault)
        second.queueFault(fault)
      }
      const calls = times(100, () =>
        ask(gateway).then(
          ({ status }) => statuses.push(status),
          () => undefined,
        ),
      )
      await eventually(() => first.activeRequests === 100)
      await first.close()
      await eventually(() => statuses.length >= 80 && second.activeRequests >= 20)
      expect(statuses).toEqual(times(80, () => 502))
      expect(second.requests).toHaveLength(20)
      await second.close()
      await Promise.all(calls)
    })
  })
})

describe('The choice between two channels of one priority', () => {
  it('spares the one that is clearly slower', async () => {
    await withPair(0, {}, async ({ gateway, first, second }) => {
      for (const fault of times(60, () => ({ kind: 'delay', ms: 300 }) as const)) first.queueFault(fault)
      for (let call = 0; call < 60; call++) await ask(gateway)
      expect(first.requests.length + second.requests.length).toBe(60)
      expect(first.requests.length).toBeLessThan(15)
    })
  })

  it('spares the one where many wait already', async () => {
    await withPair(0, {}, async ({ gateway, first, second }) => {
      await bothKnown(gateway)
      const before = first.requests.length
      for (const fault of times(40, () => 'hang' as const)) first.queueFault(fault)
      const leave: (() => void)[] = []
      for (let call = 0; call < 40; call++) {
        const asked = first.requests.length + second.requests.length
        leave.push(startChat(gateway))
        await eventually(() => first.requests.length + second.requests.length > asked)
      }
      expect(first.requests.length - before).toBeLessThan(15)
      for (const one of leave) one()
    })
  })
})

describe('A channel that falls silent after it was fast', () => {
  afterEach(() => {
    jest.restoreAllMocks()
  })

  /** Lets this process believe that so much more time has passed. Timers ring as before. */
  function passMs(ms: number): void {
    const nowMs = performance.now.bind(performance)
    jest.spyOn(performance, 'now').mockImplementation(() => nowMs() + ms)
  }

  /** Both answer within 50 ms, which is known of both; from here on the first does not answer any more. */
  async function silence({ gateway, first, second }: Pair): Promise<void> {
    const delays = times(50, () => ({ kind: 'delay', ms: 50 }) as const)
    for (const fault of times(10, () => delays).flat()) second.queueFault(fault)
    const latencyMs = (id: string): number => channelOf(gateway, id).latencyMs ?? Infinity
    // Whatever is done for the first time takes longer, and one of the two would pass for the slower.
    await eventually(
      async () => {
        for (const id of IDS) gateway.application.get(ChannelHealth).reset(id)
        first.reset()
        for (const fault of delays) first.queueFault(fault)
        await bothKnown(gateway)
        return Math.max(...IDS.map(latencyMs)) <= 1.3 * Math.min(...IDS.map(latencyMs))
      },
      () => IDS.map(latencyMs),
      PATIENCE_MS,
    )
    first.reset()
    for (const fault of times(100, () => 'hang' as const)) first.queueFault(fault)
  }

  /** A call that is answered, or that the first channel does not answer. */
  async function askOrWait({ gateway, first }: Pair): Promise<void> {
    const before = first.requests.length
    let isAnswered = false
    const answered = ask(gateway).then(
      () => (isAnswered = true),
      () => undefined,
    )
    await eventually(() => isAnswered || first.requests.length > before)
    if (first.requests.length === before) await answered
  }

  it('gets no further calls while two wait there, however long ago it was fast', async () => {
    await withPair(0, {}, async (pair) => {
      const { gateway, first } = pair
      await silence(pair)
      await eventually(
        async () => {
          await askOrWait(pair)
          return first.activeRequests >= 2
        },
        () => first.activeRequests,
        PATIENCE_MS,
      )
      passMs(11_000)
      // The second one's speed is unknown as well, until its next response.
      await eventually(
        async () => {
          await askOrWait(pair)
          return channelOf(gateway, 'second').latencyMs !== undefined
        },
        () => channelOf(gateway, 'second'),
        PATIENCE_MS,
      )
      const silent = channelOf(gateway, 'first').waiting
      for (let call = 0; call < 20; call++) await askOrWait(pair)
      expect(channelOf(gateway, 'first').waiting).toBe(silent)
      expect(channelOf(gateway, 'first').state).toBe('closed')
    })
  })

  it('gets no further calls once one has waited there to its deadline, though its breaker is closed', async () => {
    const sections = { timeouts: { firstByteMs: 1_000 }, breaker: { failures: 1_000 } }
    await withPair(0, sections, async (pair) => {
      const { gateway, first, second } = pair
      await silence(pair)
      await eventually(
        async () => {
          expect((await ask(gateway)).status).toBe(200)
          return channelOf(gateway, 'first').consecutiveFailures > 0
        },
        () => channelOf(gateway, 'first'),
        PATIENCE_MS,
      )
      const before = [first.requests.length, second.requests.length] as const
      for (let call = 0; call < 20; call++) expect((await ask(gateway)).status).toBe(200)
      expect([first.requests.length, second.requests.length]).toEqual([before[0], before[1] + 20])
      expect(channelOf(gateway, 'first')).toMatchObject({ state: 'closed', consecutiveFailures: 1, waiting: 0 })
    })
  })
})

describe('The breaker hears of', () => {
  it('realtime sessions that cannot be opened', async () => {
    await withPair(1, { breaker: { failures: 2, coolDownMs: 60_000 } }, async ({ gateway, first, second }) => {
      const url = gateway.url.replace('http', 'ws')
      for (const dials of [1, 2, 3]) {
        if (dials < 3) first.realtime.queueFault({ kind: 'status', status: 500, body: '{}' })
        const probe = await RealtimeProbe.open({ url, key: TEST_KEY })
        await probe.close()
      }
      expect(channelOf(gateway, 'first')).toMatchObject({ state: 'open', consecutiveFailures: 2 })
      expect([first.realtime.sessions.length, second.realtime.sessions.length]).toEqual([2, 3])
    })
  })

  it('creates of tasks that fail, and is not closed by reads that succeed', async () => {
    const sections = { breaker: { failures: 1, coolDownMs: 100 } }
    await withLab(startVidgenGateway({ withSecond: true, sections }), async (lab) => {
      const caller = new VideoCaller(lab.gateway)
      const id = await caller.created()
      lab.simulator.queueFault('429', 'POST')
      await caller.created()
      expect(channelOf(lab.gateway, 'first').state).toBe('open')
      expect((await caller.read(id)).body.code).toBe(0)
      await eventually(() => channelOf(lab.gateway, 'first').state === 'half_open')
      expect((await caller.read(id)).body.code).toBe(0)
      expect(channelOf(lab.gateway, 'first').state).toBe('half_open')
      await caller.created()
      expect(channelOf(lab.gateway, 'first').state).toBe('closed')
    })
  })
})
