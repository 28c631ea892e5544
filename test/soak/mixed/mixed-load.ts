import { setTimeout as pause } from 'node:timers/promises'
import { type Ending, ENDINGS } from './http-caller.js'
import type { MixedStage } from './mixed-stage.js'
import { TRAFFIC, type Traffic } from './mixed-traffic.js'
import { type MixedOptions, spoilTraffic } from './mixed-upstreams.js'

export type Counts = Readonly<Record<Traffic, Readonly<Record<Ending, number>>>>

const LONGEST_PAUSE_MS = 250
const SCRAPE_MS = 5000

/** So many times in a run, the configuration is read anew while everybody is served. */
const RELOADS = 20

/** All callers at once for as long as the options say. Resolves when the last call is over. */
export async function underLoad({ runMs, sampleMs, workers }: MixedOptions, stage: MixedStage): Promise<Counts> {
  const { gateway, traffic, upstreams, process, metrics, random } = stage
  const counts = emptyCounts()
  const working = AbortSignal.timeout(runMs)
  const stopSpoiling = spoilTraffic(upstreams, random.fork())
  const reloading = setInterval(() => gateway.child.kill('SIGHUP'), runMs / (RELOADS + 1))
  working.addEventListener('abort', () => {
    clearInterval(reloading)
  })
  const kinds = Object.keys(TRAFFIC) as Traffic[]
  const work = Array.from({ length: workers }, async (_, worker) => {
    const own = random.fork()
    // Everybody begins with another kind, so that a short run has seen all of them.
    for (let kind = kinds[worker % kinds.length]; !working.aborted; kind = own.weighted(TRAFFIC)) {
      if (kind === undefined) throw new Error('there is no traffic')
      counts[kind][await traffic.call(kind, own)] += 1
      await pause(own.between(0, LONGEST_PAUSE_MS))
    }
  })
  await Promise.all([...work, process.run(sampleMs, working), metrics?.run(SCRAPE_MS, working)])
  stopSpoiling()
  return counts
}

const emptyCounts = (): Record<Traffic, Record<Ending, number>> =>
  Object.fromEntries(
    Object.keys(TRAFFIC).map((kind) => [kind, Object.fromEntries(ENDINGS.map((ending) => [ending, 0]))]),
  ) as Record<Traffic, Record<Ending, number>>
