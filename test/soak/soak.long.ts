import { afterEach, expect, it } from '@jest/globals'
import { describeRun, runSoak } from './soak-run.js'
import { openStage, type SoakStage, STORES } from './soak-stage.js'

const { SOAK_MINUTES = '3', SOAK_STORE = STORES.join(','), SOAK_SEED = String(Date.now() % 1_000_000) } = process.env
const totalMs = Number(SOAK_MINUTES) * 60_000
/** For starting, settling and looking at thousands of tasks. */
const MARGIN_MS = 1_800_000

let stage: SoakStage | undefined
afterEach(() => stage?.close())

it.each(STORES.filter((store) => SOAK_STORE.split(',').includes(store)))(
  'keeps every promise through the chaos, on the %s store',
  async (store) => {
    stage = await openStage(store, Number(SOAK_SEED))
    const options = {
      chaosMs: (totalMs * 2) / 3,
      calmMs: totalMs / 3,
      killEveryMs: 4000,
      workers: 20,
      patienceMs: 300_000,
    }
    const outcome = await runSoak(stage, options)
    process.stdout.write(`${describeRun(`${store}, seed ${SOAK_SEED}`, options, outcome)}\n`)
    expect(outcome.violations.slice(0, 50)).toEqual([])
  },
  totalMs + MARGIN_MS,
)
