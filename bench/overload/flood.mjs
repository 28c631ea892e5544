/**
 * A greedy caller, in a process of its own: `node flood.mjs` with a JSON object in FLOOD: `port`, `request` (base64), `connections`, `depth`
 * (requests written at once on each), `ratePerSecond`, `durationMs`. Sends at that rate as far as connections are free, whatever comes
 * back, and prints what it sent and what it was answered as JSON.
 */
import { connect } from 'node:net'

const { port, request, connections, depth, ratePerSecond, durationMs } = JSON.parse(process.env.FLOOD)
const BATCH = Buffer.concat(Array.from({ length: depth }, () => Buffer.from(request, 'base64')))
const STATUS_LINE = /HTTP\/1\.1 (\d{3}) /g
const TICK_MS = 5

const answers = {}
const idle = []
let sent = 0

function open() {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  let waiting = 0
  const state = {
    send() {
      waiting = depth
      sent += depth
      socket.write(BATCH)
    },
  }
  socket.on('connect', () => idle.push(state))
  socket.on('error', () => undefined)
  socket.on('close', () => setTimeout(open, 50))
  socket.on('data', (chunk) => {
    for (const [, status] of chunk.latin1Slice().matchAll(STATUS_LINE)) {
      answers[status] = (answers[status] ?? 0) + 1
      waiting--
      if (waiting === 0) idle.push(state)
    }
  })
}

for (let count = 0; count < connections; count++) setTimeout(open, count / 4)
const startMs = performance.now()
const timer = setInterval(() => {
  const due = ((performance.now() - startMs) / 1000) * ratePerSecond
  while (sent < due && idle.length > 0) idle.pop().send()
  if (performance.now() - startMs < durationMs) return
  clearInterval(timer)
  process.stdout.write(JSON.stringify({ sent, answers }), () => process.exit(0))
}, TICK_MS)
