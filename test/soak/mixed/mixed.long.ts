import { expect, it } from '@jest/globals'
import { describeMixed, runMixed } from './mixed-run.js'
import { flatnessOf } from './process-samples.js'
import { type SoakStore, startSurroundings } from './surroundings.js'

const { SOAK_MINUTES = '30', SOAK_SEED = String(Date.now() % 1_000_000), SOAK_STORE } = process.env
const runMs = Number(SOAK_MINUTES) * 60_000
/** Enough of them for a slope, however short the run is. */
const sampleMs = Math.min(10_000, Math.round(runMs / 90))
const options = { runMs, sampleMs, workers: 24, seed: Number(SOAK_SEED) }
/** For starting and coming to rest. */
const MARGIN_MS = 180_000

it(
  'holds no more after a long time of all kinds of traffic than after a short one',
  async () => {
    const surroundings = await startSurroundings(SOAK_STORE as SoakStore | undefined)
    try {
      const outcome = await runMixed({ ...options, surroundings })
      process.stdout.write(`${describeMixed({ ...options, surroundings }, outcome)}\n`)
      const { counts, faults, leftUpstream, metrics, samples } = outcome
      expect(faults).toEqual([])
      expect(leftUpstream).toBe(0)
      expect(flatnessOf(samples).filter(({ isFlat }) => !isFlat)).toEqual([])
      // Faults have struck wherever they should: a run in which nothing failed says little.
      expect(Object.values(counts).reduce((sum, { limited }) => sum + limited, 0)).toBeGreaterThan(0)
      for (const kind of [
        'chat',
        'chatStream',
        'messagesStream',
        'speech',
        'realtime',
        'realtimeSlow',
        'page',
      ] as const) {
        expect([kind, counts[kind].failed]).not.toEqual([kind, 0])
      }
      expect(counts.file.refused).toBeGreaterThan(0)
      const reloads = new Map(metrics?.valuesOf('gateway_config_reloads_total', 'outcome'))
      expect(reloads.get('applied')).toBeGreaterThan(10)
      expect(reloads.get('refused') ?? 0).toBe(0)
      expect(new Map(metrics?.valuesOf('gateway_trace_spans_total', 'outcome')).get('sent')).toBeGreaterThan(0)
    } finally {
      await surroundings.close()
    }
  },
  options.runMs + MARGIN_MS,
)
