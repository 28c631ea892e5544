import { Connection } from '../driver/connection.mjs'
import { Tally } from './tally.mjs'

/** More connections than this would be a measurement of the operating system's tables. */
const MAXIMUM_CONNECTIONS = 8_000

/** How long a load waits for responses after its end; requests without one by then count as unanswered. */
const PATIENCE_MS = 15_000

/** Kept-alive connections, as many as there are requests in flight; the most recently used one is used first. */
class Connections {
  #idle = []
  #all = new Set()
  #peak = 0

  constructor(port) {
    this.port = port
  }

  get peak() {
    return this.#peak
  }

  /** Undefined when there are too many. */
  take() {
    let connection = this.#idle.pop()
    while (connection?.closed) connection = this.#drop(connection)
    if (connection !== undefined) return connection
    if (this.#all.size >= MAXIMUM_CONNECTIONS) return undefined
    connection = new Connection(this.port)
    this.#all.add(connection)
    this.#peak = Math.max(this.#peak, this.#all.size)
    return connection
  }

  giveBack(connection) {
    if (connection.closed) this.#drop(connection)
    else this.#idle.push(connection)
  }

  /**
   * Opens connections before they are needed, some at a time, so that no queue of the kernel overflows. Each carries one
   * request, as a server soon closes those that never did.
   */
  async open(count) {
    while (this.#all.size < count) {
      const opened = Array.from({ length: Math.min(64, count - this.#all.size) }, () => new Connection(this.port))
      await Promise.all(opened.map(greet))
      for (const connection of opened) this.#all.add(connection)
      this.#idle.push(...opened)
    }
    this.#peak = this.#all.size
  }

  closeAll() {
    for (const connection of this.#all) connection.close()
  }

  #drop(connection) {
    this.#all.delete(connection)
    return this.#idle.pop()
  }
}

const GREETING = Buffer.from('GET /health/live HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n')

const greet = (connection) =>
  new Promise((resolve, reject) => connection.send(GREETING, { onDone: resolve, onError: reject }))

/**
 * Sends requests on schedule, independent of earlier ones, and counts the outcome of each: one phase after the
 * other, without a pause and over the same connections. Times count from the moment a request was due. `phases`: each
 * with its `ratePerSecond` for `durationMs`. `mix`: what is sent. `promptMs`: a 2xx within it is goodput. `prepare`:
 * connections opened before. `cpuOf`: the service whose CPU time is measured. Rejects if a phase has no rate, as after a load
 * of which nothing was served: no request of it would ever be due.
 * @returns {Promise<{ tally: Tally, connections: number, driverShare: number, gatewayShare: number, tookMs: number }[]>} one
 *   for each phase; shares of one core; `connections` at most until its end
 */
export async function openLoads({ port, mix, promptMs, prepare = 0, cpuOf, phases }) {
  for (const { ratePerSecond } of phases)
    if (!(ratePerSecond > 0)) throw new Error(`nothing was served in time before a load of ${ratePerSecond} a second`)
  const connections = new Connections(port)
  await connections.open(prepare)
  const loads = []
  for (const phase of phases) loads.push(await sendPhase({ connections, mix, promptMs, cpuOf, ...phase }))
  await untilQuiet(() => loads.every(({ open }) => open.size === 0))
  // Closing reports no outcome: requests still open have none yet.
  for (const { open, tally } of loads) for (const dueMs of open) tally.count('unanswered', dueMs, dueMs)
  connections.closeAll()
  return loads
}

async function sendPhase({ connections, mix, promptMs, cpuOf, ratePerSecond, durationMs }) {
  const startMs = performance.now()
  const cpu = process.cpuUsage()
  const servedCpu = cpuOf.cpuMicroseconds()
  const load = { tally: new Tally(startMs), open: new Set() }
  const planned = Math.max(1, Math.floor((ratePerSecond * durationMs) / 1000))
  await onSchedule(planned, 1000 / ratePerSecond, (dueMs) => launch(load, dueMs, { connections, mix, promptMs }))
  const tookMs = performance.now() - startMs
  const used = process.cpuUsage(cpu)
  const gatewayShare = (cpuOf.cpuMicroseconds() - servedCpu) / 1000 / tookMs
  const driverShare = (used.user + used.system) / 1000 / tookMs
  return Object.assign(load, { connections: connections.peak, driverShare, gatewayShare, tookMs })
}

/** Sends one request that was due at `dueMs`. */
function launch({ tally, open }, dueMs, { connections, mix, promptMs }) {
  const connection = connections.take()
  if (connection === undefined) return tally.count('unsent', dueMs, dueMs)
  tally.sentLateMs.push(performance.now() - dueMs)
  open.add(dueMs)
  const end = (outcome) => {
    open.delete(dueMs)
    tally.count(outcome, dueMs, performance.now())
    connections.giveBack(connection)
  }
  const { request, expectedBytes } = mix.next()
  let refusal = ''
  connection.send(request, {
    onBody: (buffer, from, to) => {
      if (connection.status === 503) refusal += buffer.latin1Slice(from, to)
    },
    onDone: (status, bodyBytes) => {
      const isRight = bodyBytes === expectedBytes
      const isPrompt = performance.now() - dueMs <= promptMs
      end(outcomeOf({ status, isRight, isPrompt, head: connection.head, refusal }))
    },
    onError: () => end('broken'),
  })
}

/** What an answer counts as, by `Tally`. */
export function outcomeOf({ status, isRight, isPrompt, head, refusal }) {
  if (status === 200 && isRight) return isPrompt ? 'good' : 'late'
  if (status !== 503) return 'otherStatus'
  return /\r\nretry-after: *\d+\r\n/i.test(head) && saysOverloaded(refusal) ? 'refused' : 'badRefusal'
}

/** The requests here are chat and speech, whose errors have the reason in the same field. */
function saysOverloaded(body) {
  try {
    return JSON.parse(body).error.code === 'overloaded'
  } catch {
    return false
  }
}

/** Calls `launch(dueMs)` once for each of `count` requests, as soon as each is due; resolves after the last. */
function onSchedule(count, gapMs, launch) {
  const start = performance.now()
  let sent = 0
  return new Promise((resolve) => {
    const tick = () => {
      const now = performance.now()
      while (sent < count && start + sent * gapMs <= now) launch(start + sent++ * gapMs)
      if (sent === count) resolve()
      else setTimeout(tick, Math.max(0, start + sent * gapMs - performance.now()))
    }
    tick()
  })
}

async function untilQuiet(isQuiet) {
  const deadline = performance.now() + PATIENCE_MS
  while (!isQuiet() && performance.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 20))
}
