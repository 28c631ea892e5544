import { closedLoop } from '../driver/closed-loop.mjs'
import { gatewayConfig } from '../gateway-config.mjs'
import { LoadMix } from './load-mix.mjs'
import { openLoads } from './open-load.mjs'
import { startPinned } from './pinned.mjs'

/** Callers of the closed loop that finds out what can be served at all. */
const CALLERS = 64

/** A served answer counts when it came this soon after its request was due. */
export const PROMPT_MS = 1_000

/** Kept-alive connections opened before an open load starts, as clients of a running gateway have them. */
const CONNECTIONS = 3_000

/** Of saturation: a load that is no burden, before and after. */
const CALM_SHARE = 0.5

export const OVERLOAD_FACTOR = 3

/** Of saturation: a load of which nothing may be refused. */
export const UNREFUSED_SHARE = 0.85

/** Rates at which saturation is looked for, as shares of what the closed loop has served; the first one served in full ends it. */
const SEARCHED_SHARES = [1, 0.9, 0.8, 0.7, 0.6]
const SERVED_SHARE = 0.99

/** Finds out how much of a mix the gateway serves, sends it three times as much, then half as much again. */
export class OverloadRun {
  /** `mixName`: one of `MIXES`. */
  constructor(plan, mixName) {
    this.plan = plan
    this.mixName = mixName
  }

  async run() {
    await this.#start()
    const { warmUpMs, closedMs, openMs, overloadMs, recoveryMs } = this.plan
    await this.#closed(warmUpMs)
    const closed = await this.#closed(closedMs)
    const [calm] = await this.#open([['before: half of it', CALM_SHARE * closed.ratePerSecond, openMs / 2]])
    const part = await this.#servedShare(closed.ratePerSecond, openMs / 2)
    const saturated = (when) => [`saturation, ${when}: ${part * 100} % of it`, part * closed.ratePerSecond, openMs]
    const [before] = await this.#open([saturated('before')])
    const [below] = await this.#open([
      [`below saturation: ${UNREFUSED_SHARE * 100} % of it`, UNREFUSED_SHARE * before.goodPerSecond, openMs],
    ])
    const [overload, recovery] = await this.#open([
      ['overload', OVERLOAD_FACTOR * before.goodPerSecond, overloadMs],
      ['at once after it: half of saturation', CALM_SHARE * before.goodPerSecond, recoveryMs],
    ])
    const [after] = await this.#open([saturated('after')])
    return { machine: this.machine, mixName: this.mixName, closed, calm, before, below, overload, recovery, after }
  }

  /** The share of the closed loop's rate with the highest goodput, from all of it down to one that is served in full. */
  async #servedShare(closedRate, durationMs) {
    let best = { goodPerSecond: 0 }
    for (const part of SEARCHED_SHARES) {
      const [load] = await this.#open([[`looking for saturation: ${part * 100} %`, part * closedRate, durationMs]])
      if (load.goodPerSecond > best.goodPerSecond) best = { ...load, part }
      if (load.tally.total('good') >= SERVED_SHARE * load.tally.all) break
    }
    if (best.part === undefined) throw new Error('nothing was served in time at any rate')
    return best.part
  }

  async #start() {
    Object.assign(this, await startPinned((upstreamUrl) => gatewayConfig(upstreamUrl)))
    this.mix = await LoadMix.probe(this.mixName, this.gateway.port)
  }

  async #closed(durationMs) {
    const { port } = this.gateway
    const cpu = this.gateway.cpuMicroseconds()
    const startMs = performance.now()
    const nextCall = () => this.mix.next()
    const { completed } = await closedLoop({ port, nextCall, concurrency: CALLERS, durationMs })
    const tookMs = performance.now() - startMs
    this.#cutLog()
    return {
      ratePerSecond: (completed / tookMs) * 1000,
      gatewayShare: (this.gateway.cpuMicroseconds() - cpu) / 1000 / tookMs,
      cpuMicroseconds: (this.gateway.cpuMicroseconds() - cpu) / completed,
    }
  }

  /** `phases`: name, rate and duration of each; they follow each other without a pause. */
  async #open(phases) {
    const loads = await openLoads({
      ...{ port: this.gateway.port, mix: this.mix, promptMs: PROMPT_MS, prepare: CONNECTIONS, cpuOf: this.gateway },
      phases: phases.map(([, ratePerSecond, durationMs]) => ({ ratePerSecond, durationMs })),
    })
    this.#cutLog()
    console.error(phases.map(([name]) => name).join(', '))
    return loads.map((load, index) => {
      const [name, ratePerSecond] = phases[index]
      return { name, ratePerSecond, goodPerSecond: load.tally.total('good') / (load.tookMs / 1000), ...load }
    })
  }

  #cutLog() {
    this.gateway.cutLog()
  }
}
