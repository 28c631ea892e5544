import { Connection } from './connection.mjs'
import { checkAnswer, DRAIN_LIMIT_MS } from './answer-check.mjs'

/** Always the same call. */
const only = (call) => () => call

/**
 * `concurrency` callers that each send the next request when the last is answered, for `durationMs` or `limit` requests.
 * `nextCall`: what to send, where it is not one `request` over and over again.
 * `mayFail`: an answer that breaks off is counted, and its caller goes on with a new connection.
 * Resolves when every request that was sent is answered.
 * @returns {Promise<{ completed: number, failed: number, bodyBytes: number }>}
 */
export function closedLoop({
  port,
  request,
  expectedBytes,
  nextCall = only({ request, expectedBytes }),
  concurrency,
  durationMs,
  limit = Infinity,
  mayFail = false,
}) {
  const connections = Array.from({ length: concurrency }, () => new Connection(port))
  const end = performance.now() + durationMs
  const total = { started: 0, completed: 0, failed: 0, bodyBytes: 0 }
  let active = concurrency
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('a slot did not drain')), durationMs + DRAIN_LIMIT_MS)
    const next = (connection, exchange) => {
      if (performance.now() < end && total.started < limit) {
        total.started += 1
        const call = nextCall()
        exchange.expectedBytes = call.expectedBytes
        return connection.send(call.request, exchange)
      }
      active -= 1
      if (active === 0) {
        clearTimeout(timer)
        resolve(total)
      }
    }
    for (const index of connections.keys()) {
      const exchange = {
        onDone: (status, bodyBytes) => {
          checkAnswer(status, bodyBytes, exchange.expectedBytes)
          total.completed += 1
          total.bodyBytes += bodyBytes
          next(connections[index], exchange)
        },
        onError: (error) => {
          if (mayFail) {
            total.failed += 1
            connections[index].close()
            connections[index] = new Connection(port)
            return next(connections[index], exchange)
          }
          clearTimeout(timer)
          reject(error)
        },
      }
      next(connections[index], exchange)
    }
  }).finally(() => connections.forEach((connection) => connection.close()))
}
