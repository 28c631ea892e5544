import { Connection } from '../driver/connection.mjs'
import { Tally } from './tally.mjs'

/** More connections than this would be a measurement of the operating system's tables. */
const MAXIMUM_CONNECTIONS = 8_000

/** How long past its end a load waits for answers; whatever has none by then never gets one. */
const PATIENCE_MS = 15_000

/** Kept-alive connections, grown with what is in flight; the one used last is used first. */
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
 * Sends `ratePerSecond` requests on schedule for `durationMs`, whatever becomes of earlier ones, and counts what becomes
 * of each. Times count from the moment a request was due. `mix`: what is sent. `promptMs`: a 2xx within it is goodput.
 * `prepare`: connections opened before. `cpuOf`: the service whose CPU time is told.
 * @returns {Promise<{ tally: Tally, connections: number, driverShare: number, gatewayShare: number, tookMs: number }>} shares
 *   of one core
 */
export async function openLoad({ port, mix, ratePerSecond, durationMs, promptMs, prepare = 0, cpuOf }) {
  const connections = new Connections(port)
  await connections.open(prepare)
  const planned = Math.max(1, Math.floor((ratePerSecond * durationMs) / 1000))
  const gapMs = 1000 / ratePerSecond
  const startMs = performance.now()
  const cpu = process.cpuUsage()
  const servedCpu = cpuOf.cpuMicroseconds()
  const tally = new Tally(startMs)
  let open = 0
  const launch = (dueMs) => {
    const connection = connections.take()
    if (connection === undefined) return tally.count('unsent', dueMs, dueMs)
    tally.sentLateMs.push(performance.now() - dueMs)
    open += 1
    const end = (outcome) => {
      open -= 1
      tally.count(outcome, dueMs, performance.now())
      connections.giveBack(connection)
    }
    const { request, expectedBytes } = mix.next()
    connection.send(request, {
      onDone: (status, bodyBytes) => {
        tally.status(status)
        const isRight = bodyBytes === expectedBytes
        end(outcomeOf({ status, isRight, isPrompt: performance.now() - dueMs <= promptMs, head: connection.head }))
      },
      onError: () => end('broken'),
    })
  }
  await onSchedule(planned, gapMs, launch)
  const tookMs = performance.now() - startMs
  const used = process.cpuUsage(cpu)
  const gatewayShare = (cpuOf.cpuMicroseconds() - servedCpu) / 1000 / tookMs
  await untilQuiet(() => open === 0)
  // Closing tells nobody: what is open now has no outcome yet.
  for (let missing = open; missing > 0; missing--) tally.count('unanswered', startMs + durationMs - 1, startMs)
  connections.closeAll()
  const driverShare = (used.user + used.system) / 1000 / tookMs
  return { tally, connections: connections.peak, driverShare, gatewayShare, tookMs }
}

/** What an answer counts as, by `Tally`. */
export function outcomeOf({ status, isRight, isPrompt, head }) {
  if (status === 200 && isRight) return isPrompt ? 'good' : 'late'
  if (status !== 503) return 'otherStatus'
  return /\r\nretry-after: *\d+\r\n/i.test(head) ? 'refused' : 'badRefusal'
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
