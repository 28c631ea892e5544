import { expect, it } from '@jest/globals'
import { flatnessOf } from './flatness.js'
import { describeMixed } from './mixed-report.js'
import { runMixed } from './mixed-run.js'

const { SOAK_MINUTES = '30', SOAK_SEED = String(Date.now() % 1_000_000) } = process.env
const runMs = Number(SOAK_MINUTES) * 60_000
/** Enough of them for a slope, however short the run is. */
const sampleMs = Math.min(10_000, Math.round(runMs / 90))
const options = { runMs, sampleMs, workers: 24, seed: Number(SOAK_SEED) }
/** Of the gateway itself: polls, probes, the keep-alive of its pools. */
const TIMERS_AT_REST = 12
/** For starting and coming to rest. */
const MARGIN_MS = 120_000

it(
  'holds no more after a long time of all kinds of traffic than after a short one',
  async () => {
    const outcome = await runMixed(options)
    process.stdout.write(`${describeMixed(options, outcome)}\n`)
    expect(outcome.faults).toEqual([])
    expect(outcome.leftUpstream).toBe(0)
    expect(outcome.atRest.timers).toBeLessThanOrEqual(TIMERS_AT_REST)
    expect(flatnessOf(outcome.samples).filter(({ isFlat }) => !isFlat)).toEqual([])
  },
  options.runMs + MARGIN_MS,
)
