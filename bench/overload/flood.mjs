/**
 * A greedy caller, in a process of its own: `node flood.mjs` with a JSON object in FLOOD: `port`, `requests` (base64, sent in turn),
 * `connections`, `depth` (requests written at once on each), `ratePerSecond`, `durationMs`. Sends at that rate as far as connections are
 * free, whatever comes back, and prints what it sent and what it was answered as JSON.
 */
import { connect } from 'node:net'
import { Connection } from '../driver/connection.mjs'

const { port, requests, connections, depth, ratePerSecond, durationMs } = JSON.parse(process.env.FLOOD)
const REQUESTS = requests.map((text) => Buffer.from(text, 'base64'))
const STATUS_LINE = /HTTP\/1\.1 (\d{3}) /g
const TICK_MS = 5
const REOPEN_MS = 50

const answers = {}
/** Each sends once when it is called, and is put back when that is answered. */
const idle = []
let sent = 0

const count = (status) => (answers[status] = (answers[status] ?? 0) + 1)
const next = () => REQUESTS[sent++ % REQUESTS.length]

function openOneByOne() {
  const connection = new Connection(port)
  const send = () =>
    connection.send(next(), {
      onDone: (status) => {
        count(status)
        idle.push(send)
      },
      onError: () => setTimeout(openOneByOne, REOPEN_MS),
    })
  idle.push(send)
}

function openPipelined() {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  let waiting = 0
  const send = () => {
    waiting = depth
    socket.write(Buffer.concat(Array.from({ length: depth }, next)))
  }
  socket.on('connect', () => idle.push(send))
  socket.on('error', () => undefined)
  socket.on('close', () => setTimeout(openPipelined, REOPEN_MS))
  socket.on('data', (chunk) => {
    for (const [, status] of chunk.latin1Slice().matchAll(STATUS_LINE)) {
      count(status)
      waiting--
      if (waiting === 0) idle.push(send)
    }
  })
}

const open = depth === 1 ? openOneByOne : openPipelined
for (let index = 0; index < connections; index++) setTimeout(open, index / 4)
const startMs = performance.now()
const timer = setInterval(() => {
  const due = ((performance.now() - startMs) / 1000) * ratePerSecond
  while (sent < due && idle.length > 0) idle.pop()()
  if (performance.now() - startMs < durationMs) return
  clearInterval(timer)
  process.stdout.write(JSON.stringify({ sent, answers }), () => process.exit(0))
}, TICK_MS)
