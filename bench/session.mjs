import { cpus } from 'node:os'
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gatewayConfig } from './gateway-config.mjs'
import { machineMicroseconds, scratchDirectory, startService } from './processes.mjs'
import { exchangeOnce } from './driver/connection.mjs'
import { SCENARIOS, wireBytes } from './scenarios.mjs'
import { PEERS } from './yardsticks/peers.mjs'

/** Above this share of one core the driver may be what is measured. */
export const DRIVER_LIMIT = 0.8

/** Above this share of the machine others work on it, and figures of a run are not those of a quiet machine. */
export const OTHERS_LIMIT = 0.1

const here = (file) => fileURLToPath(new URL(file, import.meta.url))
export const GATEWAY_SCRIPT = here('../dist/main.js')

/** As `npm start` and the image have them: `node <flags> dist/main.js`. */
const { start } = JSON.parse(readFileSync(here('../package.json'), 'utf8')).scripts
export const GATEWAY_FLAGS = start.split(' ').slice(1, -1)
const YARDSTICK_SCRIPT = here('bare.mjs')

/** One run: the upstream, the targets that are measured against it, and what makes the run void. */
export class Session {
  voids = []
  /** Highest share of one core the driver needed in any slot. */
  driverShare = 0
  /** Other yardsticks, by their roles. */
  peers = {}
  /** Those that are not installed here. */
  notRun = []
  /** What works for the targets beside this run's own processes: its CPU time is not that of others. */
  companions = []
  #machine = { othersUs: 0, wallUs: 0 }

  /** @param {{ selfTest: boolean }} options `selfTest` measures the yardstick instead of the gateway: ratios must be 1 */
  constructor({ selfTest }) {
    this.selfTest = selfTest
  }

  async startUpstream() {
    this.upstream = await startService({
      name: 'upstream',
      script: here('upstream.mjs'),
      readyPath: '/__bench/counters',
    })
    this.upstreamUrl = `http://127.0.0.1:${this.upstream.port}`
  }

  async start() {
    await this.startUpstream()
    this.direct = { ...asTarget('direct', this.upstream), direct: true, bodies: {} }
    this.yardstick = await this.startYardstick()
    this.gateway = await this.startGateway()
    for (const target of [this.direct, this.yardstick, this.gateway]) await this.probe(target)
    for (const [role, peer] of Object.entries(PEERS)) await this.#startPeer(role, peer)
  }

  async #startPeer(role, { title, isInstalled, start }) {
    if (!isInstalled()) {
      this.notRun.push(title)
      return
    }
    this.peers[role] = { ...asTarget(role, await start(this.upstreamUrl)), isPeer: true }
    await this.probe(this.peers[role])
  }

  /** Share of all processors that neither this run nor idleness has had while slots were measured. */
  get othersShare() {
    const { othersUs, wallUs } = this.#machine
    return wallUs === 0 ? 0 : Math.max(0, othersUs) / (wallUs * cpus().length)
  }

  /** Called when all is measured. */
  checkMachine() {
    if (this.othersShare <= OTHERS_LIMIT) return
    this.voids.push(`others had ${Math.round(this.othersShare * 100)} % of this machine: measure again when it is idle`)
  }

  async startYardstick(name = 'yardstick') {
    const environment = { UPSTREAM: this.upstreamUrl }
    return asTarget(
      name,
      await startService({ name, script: YARDSTICK_SCRIPT, environment, readyPath: '/health/ready' }),
    )
  }

  /**
   * @param {{ data?: string }} options `data`: where the store is; the others are those of `gatewayConfig`
   */
  async startGateway({ data = newDataDirectory(), ...options } = {}) {
    if (this.selfTest) return this.startYardstick('gateway')
    if (!existsSync(GATEWAY_SCRIPT)) throw new Error('dist/main.js is missing: run `npm run build` first')
    const config = join(mkdtempSync(join(scratchDirectory(), 'config-')), 'gateway.yaml')
    writeFileSync(config, gatewayConfig(this.upstreamUrl, options))
    const environment = { GATEWAY_CONFIG: config, GATEWAY_DATA: data }
    const service = await startService({
      name: 'gateway',
      script: GATEWAY_SCRIPT,
      flags: GATEWAY_FLAGS,
      environment,
      readyPath: '/health/ready',
    })
    return asTarget('gateway', service)
  }

  /** Sends each scenario once, checks the whole response and keeps its length for the slots. */
  async probe(target, scenarios = SCENARIOS) {
    for (const [name, scenario] of Object.entries(scenarios)) {
      if (name === 'upload') await this.control('verify-next-upload')
      const answer = await exchangeOnce(target.port, wireBytes(scenario.request, target))
      const where = `${target.name}, ${scenario.title}`
      if (answer.status !== 200)
        throw new Error(`${where}: answered ${answer.status} ${answer.body.toString().slice(0, 500)}`)
      try {
        scenario.check(answer.body)
      } catch (error) {
        throw new Error(`${where}: ${error.message}`, { cause: error })
      }
      if (name === 'upload') await this.checkUpload(scenario, where)
      target.expected[name] = answer.bodyBytes
      if (scenario.isStamped !== true)
        target.identical[name] = answer.body.equals((this.direct.bodies[name] ??= answer.body))
    }
  }

  async checkUpload(scenario, where) {
    const last = await this.control('last-upload')
    if (last.sha256 !== scenario.request.fileSha256) {
      throw new Error(`${where}: the upstream received another file (${last.bytes} bytes)`)
    }
  }

  async control(name) {
    return (await fetch(`${this.upstreamUrl}/__bench/${name}`)).json()
  }

  /**
   * Runs one slot against a target and accounts for it: CPU of target, upstream and driver, answers at both ends.
   * @param {(() => Promise<{ completed: number, bodyBytes: number }>)} run resolves when all it sent is answered
   * @param {{ isStored?: boolean }} options `isStored`: no request may reach the upstream
   */
  async slot(target, counter, run, { isStored = false } = {}) {
    const before = (await this.control('counters')).counters[counter]
    const start = this.#readings(target)
    const result = await run().catch((error) => {
      throw new Error(`${target.name}, ${counter}: ${error.message}\n${target.service.logTail()}`, { cause: error })
    })
    const end = this.#readings(target)
    const after = (await this.control('counters')).counters[counter]
    target.service.cutLog()
    const wallMs = end.atMs - start.atMs
    const share = (name) => (end[name] - start[name]) / (wallMs * 1000)
    this.#machine.othersUs += end.machine - start.machine - ownUs(start, end)
    this.#machine.wallUs += wallMs * 1000
    const account = {
      targetUs: end.target - start.target,
      companionsUs: end.companions - start.companions,
      driver: share('driver'),
      upstream: share('upstream'),
      wallMs,
    }
    const where = `${target.name}, ${counter}`
    this.#checkDriver(where, account)
    // What a peer breaks off is its own affair.
    if (target.isPeer !== true)
      this.#checkCounts(where, result.completed, isStored ? 0 : result.completed, before, after)
    return { ...result, ...account }
  }

  #readings(target) {
    const driver = process.cpuUsage()
    return {
      atMs: performance.now(),
      target: target.service.cpuMicroseconds(),
      upstream: this.upstream.cpuMicroseconds(),
      driver: driver.user + driver.system,
      companions: this.companions.reduce((sum, companion) => sum + companion.cpuMicroseconds(), 0),
      machine: machineMicroseconds(),
    }
  }

  #checkCounts(where, completed, expected, before, after) {
    const asked = after.requests - before.requests
    const answered = after.answers - before.answers
    if (asked !== expected || answered !== expected) {
      this.voids.push(`${where}: driver got ${completed} answers, upstream had ${asked} requests, ${answered} answers`)
    }
    if (after.aborted !== before.aborted) this.voids.push(`${where}: ${after.aborted - before.aborted} answers cut off`)
  }

  #checkDriver(where, account) {
    this.driverShare = Math.max(this.driverShare, account.driver)
    if (account.driver > DRIVER_LIMIT) {
      this.voids.push(`${where}: the driver needed ${Math.round(account.driver * 100)} % of a core`)
    }
  }
}

const ownUs = (start, end) =>
  ['target', 'upstream', 'driver', 'companions'].reduce((sum, name) => sum + end[name] - start[name], 0)

/** Of a gateway of its own; gone when the run ends. */
export const newDataDirectory = () => mkdtempSync(join(scratchDirectory(), 'data-'))

function asTarget(name, service) {
  return { name, service, port: service.port, expected: {}, identical: {} }
}
