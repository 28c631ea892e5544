import { spawn } from 'node:child_process'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse, stringify } from 'yaml'
import { closedLoop } from '../driver/closed-loop.mjs'
import { gatewayConfig } from '../gateway-config.mjs'
import { freePort, scratchDirectory } from '../processes.mjs'
import { SCENARIOS, wireBytes } from '../scenarios.mjs'
import { LoadMix, MIXES } from './load-mix.mjs'
import { startPinned } from './pinned.mjs'
import { quantile } from '../statistics.mjs'
import { MODELS } from '../wire.mjs'

/** The other caller: so many requests a second, of which so many must be served, this promptly. */
const MODEST_PER_SECOND = 5
const SERVED_SHARE = 0.99
const P99_MS = 250

/** Kept alive, as SDKs have them, for every other request; the rest have connections of their own. */
const MODEST_CONNECTIONS = 4

const FLOOD_FACTOR = 10
/** The other caller is there before, and measured once the flood has opened its connections. */
const FLOOD_AFTER_MS = 1_000
const FLOOD_OPENS_MS = 4_000
/** Such a request costs twenty times as much as its refusal; a chat of 1 KB eight times: ten times its capacity cannot even be refused. */
const MIX = 'mixed'
const CALLERS = 64
const MODEST_MODEL = 'bench-modest'
const MODEST_KEY = 'the-key-of-the-other-caller-of-this-bench'
const LIMITED_KEY = 'the-key-that-may-ask-sixty-times-a-minute'
const FLOOD_SCRIPT = fileURLToPath(new URL('flood.mjs', import.meta.url))
const BALANCER_FILE = fileURLToPath(new URL('../../deploy/haproxy/haproxy.cfg', import.meta.url))

/** A connection with more requests waiting is closed. */
const MOST_WAITING = 64

/** How the greedy caller sends: on how many connections, how many requests at once, with which key. */
const FLOODS = [
  { name: 'with a key, on 1,000 connections', connections: 1_000, depth: 1, key: undefined },
  { name: 'with a key, on 3,000 connections', connections: 3_000, depth: 1, key: undefined },
  { name: 'with a key, pipelined on 100 connections', connections: 100, depth: MOST_WAITING, key: undefined },
  { name: 'with a key, 400 pipelined on one connection', connections: 1, depth: 400, key: undefined },
  { name: 'with a key that may ask 60 times a minute', connections: 1_000, depth: 1, key: LIMITED_KEY },
  { name: 'without a key, on 1,000 connections', connections: 1_000, depth: 1, key: 'invented' },
  { name: 'without a key, on 3,000 connections', connections: 3_000, depth: 1, key: 'invented' },
  { name: 'without a key, pipelined on 100 connections', connections: 100, depth: MOST_WAITING, key: 'invented' },
  { name: 'without a key, 400 pipelined on one connection', connections: 1, depth: 400, key: 'invented' },
]

/** One caller sends ten times what the gateway can serve; another one, with a key of its own, five requests a second. */
export class FairnessRun {
  constructor({ floodMs, warmUpMs, closedMs }) {
    this.plan = { floodMs, warmUpMs, closedMs }
  }

  async run() {
    await this.#start()
    const { gateway, plan } = this
    await this.#closed(plan.warmUpMs)
    const capacity = await this.#closed(plan.closedMs)
    const results = []
    for (const flood of FLOODS) results.push(await this.#measure(flood, capacity, gateway.port, 'direct', '127.0.0.1'))
    const balancer = await startBalancer(gateway.port)
    if (balancer !== undefined) {
      for (const flood of FLOODS) {
        // The balancer has a table of addresses; callers have one each.
        results.push(await this.#measure(flood, capacity, balancer.port, 'behind HAProxy', '127.0.0.2'))
      }
      balancer.stop()
    }
    return { machine: this.machine, capacity, results, hasBalancer: balancer !== undefined }
  }

  async #start() {
    Object.assign(this, await startPinned(fairnessConfig))
  }

  async #closed(durationMs) {
    const { port } = this.gateway
    const mix = await LoadMix.probe(MIX, port)
    const startMs = performance.now()
    const { completed } = await closedLoop({
      ...{ port, concurrency: CALLERS, durationMs },
      nextCall: () => mix.next(),
    })
    this.gateway.cutLog()
    return (completed / (performance.now() - startMs)) * 1000
  }

  async #measure({ name, connections, depth, key }, capacity, port, way, localAddress) {
    const durationMs = FLOOD_AFTER_MS + FLOOD_OPENS_MS + this.plan.floodMs
    const agent = new Agent({ keepAlive: true, maxSockets: MODEST_CONNECTIONS })
    const asking = askAtRate({ agent, port, localAddress }, durationMs)
    await new Promise((resolve) => setTimeout(resolve, FLOOD_AFTER_MS))
    const cpu = this.gateway.cpuMicroseconds()
    const startMs = performance.now()
    const flood = startFlood({
      ...{ port, connections, depth, durationMs: durationMs - FLOOD_AFTER_MS },
      ratePerSecond: FLOOD_FACTOR * capacity,
      requests: MIXES[MIX].map((kind) => requestText(kind, port, key)),
    })
    const modest = await asking
    const gatewayShare = (this.gateway.cpuMicroseconds() - cpu) / 1000 / (performance.now() - startMs)
    const { sent, answers } = await flood
    this.gateway.cutLog()
    console.error(`${way}, flood ${name}: ${modest.served} of ${modest.asked}, p99 ${Math.round(modest.p99Ms)} ms`)
    return {
      way,
      name,
      ...modest,
      gatewayShare,
      floodPerSecond: (sent * 1000) / (durationMs - FLOOD_AFTER_MS),
      answers,
    }
  }
}

function requestText(kind, port, key) {
  const text = wireBytes(SCENARIOS[kind].request, { port }).toString('latin1')
  const sent = key === undefined ? text : text.replace(/Authorization: Bearer \S+/, `Authorization: Bearer ${key}`)
  return Buffer.from(sent, 'latin1').toString('base64')
}

/** Each caller has an upstream of its own: how long one of them takes for hundreds at once is not what is measured. */
function fairnessConfig(modestUrl, replayUrl) {
  const settings = parse(gatewayConfig(replayUrl))
  settings.models.push({ id: MODEST_MODEL, class: 'chat', providers: ['p1'] })
  const [channel] = settings.channels
  settings.channels.push({ ...channel, id: 'modest-upstream', baseUrl: modestUrl, models: [MODEST_MODEL] })
  settings.auth.keys.push({ id: 'modest', key: MODEST_KEY })
  settings.auth.keys.push({ id: 'limited', key: LIMITED_KEY, limits: { requestsPerMinute: 60 } })
  settings.server.trustedProxies = ['127.0.0.1']
  return stringify(settings)
}

const BALANCER_LIMIT_MS = 5_000

/** The shipped file, in front of the one gateway; undefined where HAProxy is not installed. Rejects when it does not start. */
async function startBalancer(gatewayPort) {
  const [port, operators, metrics] = [await freePort(), await freePort(), await freePort()]
  const env = {
    HAPROXY_BIND: `127.0.0.1:${port}`,
    HAPROXY_OPERATORS: `127.0.0.1:${operators}`,
    HAPROXY_METRICS: `127.0.0.1:${metrics}`,
    HAPROXY_SOCKET: join(scratchDirectory(), 'haproxy.sock'),
    GATEWAY_1: `127.0.0.1:${gatewayPort}`,
    GATEWAY_2: `127.0.0.1:${gatewayPort}`,
    PATH: `${process.env.PATH}:/usr/sbin`,
  }
  const child = spawn('haproxy', ['-f', BALANCER_FILE], { env, stdio: ['ignore', 'ignore', 'inherit'] })
  let isMissing = false
  child.once('error', () => (isMissing = true))
  const deadline = performance.now() + BALANCER_LIMIT_MS
  while (performance.now() < deadline && !isMissing && child.exitCode === null) {
    const answer = await fetch(`http://127.0.0.1:${port}/health/ready`).catch(() => undefined)
    if (answer?.ok === true) return { port, stop: () => child.kill('SIGKILL') }
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  child.kill('SIGKILL')
  if (isMissing) return undefined
  throw new Error('HAProxy did not start, or found no gateway')
}

/** Runs after everything else on its core: what is measured must not wait for what floods. */
function startFlood(options) {
  const child = spawn('nice', ['-n', '15', process.execPath, FLOOD_SCRIPT], {
    env: { ...process.env, FLOOD: JSON.stringify(options) },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.on('data', (chunk) => (output += String(chunk)))
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', () => (output === '' ? reject(new Error('the flood broke off')) : resolve(JSON.parse(output))))
  })
}

/** One request; its time counts from the moment it was due. */
const ask = ({ agent, port, localAddress }, dueMs) =>
  new Promise((resolve) => {
    const { path, contentType } = SCENARIOS.chat.request
    const body = String(SCENARIOS.chat.request.body).replace(MODELS.chat, MODEST_MODEL)
    const headers = {
      authorization: `Bearer ${MODEST_KEY}`,
      'content-type': contentType,
      'content-length': body.length,
    }
    const outgoing = request(
      { host: '127.0.0.1', port, localAddress, path, method: 'POST', agent, headers },
      (answer) => {
        answer.resume().once('end', () => resolve({ status: answer.statusCode, tookMs: performance.now() - dueMs }))
      },
    )
    outgoing.once('error', () => resolve({ status: 0, tookMs: performance.now() - dueMs }))
    outgoing.end(body)
  })

async function askAtRate(target, durationMs) {
  const startMs = performance.now()
  const count = Math.floor((durationMs / 1000) * MODEST_PER_SECOND)
  const outcomes = []
  for (let index = 0; index < count; index++) {
    const dueMs = startMs + (index * 1000) / MODEST_PER_SECOND
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, dueMs - performance.now())))
    outcomes.push(ask(index % 2 === 0 ? target : { ...target, agent: false }, dueMs))
  }
  const answers = await Promise.all(outcomes)
  target.agent.destroy()
  const opening = Math.ceil(((FLOOD_AFTER_MS + FLOOD_OPENS_MS) / 1000) * MODEST_PER_SECOND)
  const measured = answers.slice(opening)
  const served = measured.filter(({ status }) => status === 200)
  return {
    asked: measured.length,
    served: served.length,
    p99Ms: quantile(
      served.map(({ tookMs }) => tookMs),
      0.99,
    ),
    refusedAtFirst: answers.slice(0, opening).filter(({ status }) => status !== 200).length,
    slowestAtFirstMs: Math.max(...answers.slice(0, opening).map(({ tookMs }) => tookMs)),
  }
}

/** Text and exit code of a run. */
export function fairnessReport({ machine, capacity, results, hasBalancer }) {
  const isKept = ({ asked, served, p99Ms }) => served >= SERVED_SHARE * asked && p99Ms <= P99_MS
  const lines = results.map((result) => {
    const { way, name, asked, served, p99Ms, refusedAtFirst, slowestAtFirstMs, floodPerSecond, gatewayShare, answers } =
      result
    const words = Object.entries(answers).map(([status, count]) => `${count} × ${status}`)
    return [
      `${isKept(result) ? 'KEPT  ' : 'MISSED'} ${way}, flood ${name}: ${served} of ${asked} served, p99 ${Math.round(p99Ms)} ms; while it began ${refusedAtFirst} refused, slowest ${Math.round(slowestAtFirstMs)} ms`,
      `         flood: ${Math.round(floodPerSecond)} a second (${(floodPerSecond / capacity).toFixed(1)} times the capacity), gateway's CPU ${Math.round(gatewayShare * 100)} %, answered ${words.join(', ') || 'nothing: each connection is closed'}`,
    ].join('\n')
  })
  const text = [
    `${machine.cpu}, ${machine.cores} cores, Node ${machine.node}${machine.pinned ? '' : '; not pinned'}; capacity: ${Math.round(capacity)} mixed requests a second`,
    `one caller floods, another one with a key sends ${MODEST_PER_SECOND} requests a second: at least ${SERVED_SHARE * 100} % served, p99 at most ${P99_MS} ms`,
    ...lines,
    ...(hasBalancer ? [] : ['NOT RUN behind HAProxy: it is not installed']),
  ].join('\n')
  return { text, code: results.every(isKept) ? 0 : 1 }
}
