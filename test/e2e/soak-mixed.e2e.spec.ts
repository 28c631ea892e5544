import { afterEach, expect, it } from '@jest/globals'
import { LISTENING_HANDLES } from '../../src/server/acceptors.js'
import { describeMixed, runMixed } from '../soak/mixed/mixed-run.js'
import { startSurroundings, type Surroundings } from '../soak/mixed/surroundings.js'

/** It takes a twentieth of it on a machine that has nothing else to do. */
const PATIENCE_MS = 600_000

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)

let surroundings: Surroundings | undefined
afterEach(() => surroundings?.close())

it(
  'serves all kinds of traffic at once while upstreams fail and callers leave, and nothing of it stays behind',
  async () => {
    surroundings = await startSurroundings('embedded')
    const options = { runMs: 12_000, sampleMs: 1000, workers: 16, seed: 1, surroundings }
    const outcome = await runMixed(options)
    const { counts, leftUpstream, before, after, faults } = outcome
    const idle = Object.entries(counts).flatMap(([kind, endings]) => (sum(Object.values(endings)) === 0 ? [kind] : []))
    expect({ idle, leftUpstream, faults, run: describeMixed(options, outcome) }).toMatchObject({
      ...{ idle: [], leftUpstream: 0, faults: [] },
    })
    const all = Object.values(counts)
    expect(sum(all.map(({ answered }) => answered))).toBeGreaterThan(20)
    expect(sum(all.map(({ left }) => left))).toBeGreaterThan(0)
    expect(counts.realtime.failed).toBeGreaterThan(0)
    expect(counts.page.failed).toBeGreaterThan(0)
    const reloads = new Map(outcome.metrics?.valuesOf('gateway_config_reloads_total', 'outcome'))
    expect(reloads.get('applied')).toBeGreaterThan(10)
    expect(reloads.get('refused') ?? 0).toBe(0)
    // It listens for callers and for scrapes; Redis, where it is installed, is connected to before the first request.
    expect(before.sockets.listening).toBe(LISTENING_HANDLES + 1)
    expect(before.connections).toBe(before.sockets.listening + before.sockets.redis)
    expect(after.connections).toBe(before.connections)
    expect(after.timers).toBeLessThanOrEqual(before.timers)
  },
  PATIENCE_MS,
)
