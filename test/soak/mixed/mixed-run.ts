import { setTimeout as pause } from 'node:timers/promises'
import type { GatewayProcess } from '../../support/gateway-process.js'
import { LogWatch } from '../log-watch.js'
import type { MetricsWatch } from './metrics-watch.js'
import { KEYS } from './mixed-configuration.js'
import { type Counts, underLoad } from './mixed-load.js'
import { atRest, type Rest } from './mixed-rest.js'
import { startStage } from './mixed-stage.js'
import { type MixedOptions, UPSTREAM_KEY } from './mixed-upstreams.js'
import type { Holdings, Sample } from './process-samples.js'
import { countRecords, type UsageCounts } from './usage-counts.js'

export interface MixedOutcome extends Rest {
  readonly counts: Counts
  readonly samples: readonly Sample[]
  /** What the gateway held before the first call. */
  readonly before: Holdings
  /** What nobody may meet with: in the gateway's log, in its metrics, as a caller, or left over. */
  readonly faults: readonly string[]
  /** Undefined: nobody scraped. */
  readonly metrics: MetricsWatch | undefined
  /** Undefined: there is no PostgreSQL to ask. */
  readonly usage: UsageCounts | undefined
}

/** The pool of the store opens more connections for the start than it keeps, and closes an idle one after ten seconds. */
const STORE_IDLE_MS = 12_000

/** Every kind of traffic at once on one gateway, its upstreams failing now and then, and looks at what it holds. */
export async function runMixed(options: MixedOptions): Promise<MixedOutcome> {
  const stage = await startStage(options)
  try {
    const { gateway, process, metrics, traffic } = stage
    if (options.surroundings?.databaseUrl !== undefined) await pause(STORE_IDLE_MS)
    const before = await process.holdings()
    const counts = await underLoad(options, stage)
    const rest = await atRest(options, before, stage)
    const logged = await logFaults(gateway)
    const usage = await countRecords(options.surroundings?.databaseUrl, metrics)
    const told = [traffic, metrics, usage].flatMap((teller) => teller?.faults ?? [])
    return {
      ...{ counts, samples: process.samples, before, metrics, usage, ...rest },
      faults: [...logged, ...told, ...rest.leftovers],
    }
  } finally {
    await stage.close()
  }
}

/** Has it end as its operator would. */
async function logFaults(gateway: GatewayProcess): Promise<readonly string[]> {
  gateway.child.kill('SIGTERM')
  const keys = Object.entries(KEYS).map(([name, key]) => [`the ${name} key of callers`, key] as const)
  const watch = new LogWatch(new Map([...keys, ['the key of an upstream', UPSTREAM_KEY] as const]))
  watch.read(await gateway.exited, 'SIGTERM')
  return watch.faults
}
