import { checkAnswer, DRAIN_LIMIT_MS } from './answer-check.mjs'
import { Connection } from './connection.mjs'

/** Keep-alive connections, as many as there are requests in flight, so that a slow response delays no other request. */
class Connections {
  #idle = []
  #all = new Set()

  constructor(port) {
    this.port = port
  }

  take() {
    let connection = this.#idle.pop()
    while (connection?.closed) connection = this.#idle.pop()
    connection ??= new Connection(this.port)
    this.#all.add(connection)
    return connection
  }

  giveBack(connection) {
    this.#idle.push(connection)
  }

  closeAll() {
    for (const connection of this.#all) connection.close()
  }
}

/** Calls `launch(dueMs)` once for each of `count` requests, `gapMs` apart, as soon as each is due. */
function onSchedule(count, gapMs, launch) {
  const start = performance.now()
  let sent = 0
  const tick = () => {
    const now = performance.now()
    while (sent < count && start + sent * gapMs <= now) launch(start + sent++ * gapMs)
    if (sent < count) setTimeout(tick, Math.max(0, start + sent * gapMs - performance.now()))
  }
  tick()
}

/**
 * Starts `ratePerSecond` requests a second on schedule for `durationMs`, whether or not earlier ones are answered.
 * Times are counted from the moment a request was due, so being late (driver or server) is part of them.
 * `readFrames(buffer, start, end, frames)`, optional, pushes a figure per frame of the body.
 * @returns {Promise<{ completed: number, bodyBytes: number, totalMs: number[], firstByteMs: number[],
 *   frames: number[], sentLateMs: number[] }>}
 */
export function openLoop({ port, request, expectedBytes, ratePerSecond, durationMs, readFrames }) {
  const connections = new Connections(port)
  const result = { completed: 0, bodyBytes: 0, totalMs: [], firstByteMs: [], frames: [], sentLateMs: [] }
  const planned = Math.max(1, Math.floor((ratePerSecond * durationMs) / 1000))
  let timer
  const work = new Promise((resolve, reject) => {
    timer = setTimeout(() => reject(new Error('an open loop did not drain')), durationMs + DRAIN_LIMIT_MS)
    onSchedule(planned, 1000 / ratePerSecond, (due) => {
      const connection = connections.take()
      let first = true
      result.sentLateMs.push(performance.now() - due)
      connection.send(request, {
        onBody: (buffer, start, end) => {
          if (first) result.firstByteMs.push(performance.now() - due)
          first = false
          readFrames?.(buffer, start, end, result.frames)
        },
        onDone: (status, bodyBytes) => {
          result.totalMs.push(performance.now() - due)
          checkAnswer(status, bodyBytes, expectedBytes)
          result.completed += 1
          result.bodyBytes += bodyBytes
          connections.giveBack(connection)
          if (result.completed === planned) resolve(result)
        },
        onError: reject,
      })
    })
  })
  return work.finally(() => {
    clearTimeout(timer)
    connections.closeAll()
  })
}
