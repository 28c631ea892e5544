import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { createLogging } from '../observability/logger.js'
import { SystemClock } from './background-work.js'
import { DueWorkLoop } from './due-work-loop.js'

interface TestStore {
  isAway: boolean
  claims: number
  /** How many of the next claims find something. */
  claimable: number
  dueAtMs: number | undefined
}

/** A loop over a store that does what the test says. All its clocks are those of jest, which move together. */
function loopLab() {
  const lines: string[] = []
  const { logger } = createLogging('info', { write: (line) => lines.push(line) })
  const store: TestStore = { isAway: false, claims: 0, claimable: 0, dueAtMs: undefined }
  const claim = (): Promise<boolean> => {
    store.claims++
    if (store.isAway) return Promise.reject(new Error('away'))
    return Promise.resolve(store.claimable-- > 0)
  }
  const nextDueAtMs = (): Promise<number | undefined> => Promise.resolve(store.dueAtMs)
  const bringForward = (): Promise<void> => Promise.resolve()
  const work = { claim, nextDueAtMs, bringForward, outage: 'work waits for the store' }
  const loop = new DueWorkLoop(work, new SystemClock(), logger)
  const claimsWithin = async (milliseconds: number): Promise<number> => {
    const before = store.claims
    await jest.advanceTimersByTimeAsync(milliseconds)
    return store.claims - before
  }
  return { loop, store, claimsWithin, log: () => lines.map((line) => JSON.parse(line) as Record<string, unknown>) }
}

describe('A loop that claims due work', () => {
  let lab: ReturnType<typeof loopLab>

  beforeEach(() => {
    jest.useFakeTimers()
    lab = loopLab()
  })
  afterEach(async () => {
    lab.loop.stop()
    // The sleep under way ends by a timer of jest: at once, and where it does not, at the end of the longest pause.
    await jest.advanceTimersByTimeAsync(30_000)
    await lab.loop.stopped()
    jest.useRealTimers()
  })

  /** Starts the loop, and lets its first round pass. */
  async function start(): Promise<void> {
    lab.loop.start()
    expect(await lab.claimsWithin(0)).toBeGreaterThan(0)
  }

  /** Passes a pause: a round is at its end and none before. */
  async function passPause(pauseMs: number): Promise<void> {
    const claims = [await lab.claimsWithin(pauseMs - 1), await lab.claimsWithin(1)]
    expect([pauseMs, ...claims]).toEqual([pauseMs, 0, 1])
  }

  it('waits longer after each round in which the store fails, up to half a minute, and logs the outage once', async () => {
    lab.store.isAway = true
    await start()
    for (const seconds of [1, 2, 4, 8, 16, 30, 30]) await passPause(seconds * 1000)
    expect(lab.log()).toMatchObject([{ level: 40, msg: 'work waits for the store', err: { message: 'away' } }])
  })

  it('logs the next outage anew, and begins with the shortest pause', async () => {
    lab.store.isAway = true
    await start()
    await passPause(1000)
    await passPause(2000)
    lab.store.isAway = false
    await passPause(4000)
    lab.store.isAway = true
    await passPause(10_000)
    await passPause(1000)
    await passPause(2000)
    expect(lab.log()).toHaveLength(2)
  })

  it('claims until there is nothing more to claim, and looks again after ten seconds where nothing waits', async () => {
    lab.store.claimable = 3
    await start()
    expect(lab.store.claims).toBe(4)
    await passPause(10_000)
  })

  it('looks again when the next work is due, but within ten seconds', async () => {
    lab.store.dueAtMs = Date.now() + 13_000
    await start()
    await passPause(10_000)
    await passPause(3000)
  })

  it('looks once a second while work is due that it may not claim', async () => {
    lab.store.dueAtMs = Date.now() - 1
    await start()
    for (let round = 0; round < 3; round++) await passPause(1000)
  })

  it('looks at once when it is woken, also in an outage, and then pauses again', async () => {
    lab.store.isAway = true
    await start()
    lab.loop.wake()
    expect(await lab.claimsWithin(0)).toBe(1)
    await passPause(2000)
  })

  it('looks at the earliest scheduled time where that is before the end of its pause, and then pauses again', async () => {
    await start()
    lab.loop.scheduleAt(Date.now() + 9000)
    lab.loop.scheduleAt(Date.now() + 3000)
    lab.loop.scheduleAt(Date.now() + 6000)
    await passPause(3000)
    await passPause(10_000)
  })

  it('ends its pause at once when it is stopped, and claims nothing more', async () => {
    await start()
    let hasStopped = false
    void lab.loop.stopped().then(() => (hasStopped = true))
    lab.loop.stop()
    expect([await lab.claimsWithin(0), hasStopped]).toEqual([0, true])
    lab.loop.wake()
    expect(await lab.claimsWithin(60_000)).toBe(0)
  })
})
