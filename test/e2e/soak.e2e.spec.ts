import { afterEach, expect, it } from '@jest/globals'
import { acknowledgedIn } from '../soak/soak-checker.js'
import { describeRun, runSoak } from '../soak/soak-run.js'
import { openStage, type SoakStage, STORES } from '../soak/soak-stage.js'

/** Some thirty times what it takes on a machine that has nothing else to do. */
const PATIENCE_MS = 600_000

let stage: SoakStage | undefined
afterEach(() => stage?.close())

it.each(STORES)(
  'loses, doubles and confuses no task while gateways are killed and upstream and receiver fail: %s store',
  async (store) => {
    stage = await openStage(store, 1)
    const options = { kills: 3, killEveryMs: 1000, acknowledged: 7, calmMs: 0, workers: 12, patienceMs: 300_000 }
    const outcome = await runSoak(stage, options)
    const { attempts, callbacks, upstream } = outcome.records
    const acknowledged = acknowledgedIn(attempts)

    expect({ run: describeRun(store, options, outcome), violations: outcome.violations }).toMatchObject({
      violations: [],
    })
    expect(outcome.figures.kills).toBeGreaterThanOrEqual(3)
    expect(acknowledged.length).toBeGreaterThan(20)
    expect(upstream.some(({ taskId }) => !acknowledged.some((attempt) => attempt.taskId === taskId))).toBe(true)
    expect(callbacks.map(({ answer }) => answer)).toEqual(expect.arrayContaining(['taken', 'failed']))
  },
  PATIENCE_MS,
)
