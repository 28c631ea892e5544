/**
 * The realtime side of the benchmark's upstream, GA dialect: answers each append with one audio delta of the same number,
 * and validates every append.
 */
import { WebSocketServer } from 'ws'
import { AUDIO_BYTES, DELTA, FrameCheck, isAppend, sessionEvent, writeNumber } from './realtime-wire.mjs'
import { UPSTREAM_KEY } from './wire.mjs'

const AS_TEXT = { binary: false }

function converse(socket, counter, faults) {
  const check = new FrameCheck(isAppend)
  socket.send(sessionEvent('session.created'))
  socket.on('message', (bytes) => {
    if (bytes.length < AUDIO_BYTES) return socket.send(sessionEvent('session.updated'))
    const delta = Buffer.from(DELTA.bytes)
    writeNumber(delta, DELTA.at, check.frames)
    check.take(bytes, 0, bytes.length)
    counter.requests += 1
    counter.bytesIn += bytes.length
    counter.answers += 1
    counter.bytesOut += delta.length
    socket.send(delta, AS_TEXT)
  })
  socket.on('error', () => undefined)
  socket.on('close', () => {
    faults.outOfOrder += check.outOfOrder
    faults.changed += check.changed
    faults.open -= 1
  })
}

/**
 * Takes the upgrades of a server.
 * @param counter `requests` are appends, `answers` deltas
 * @param faults frames that came in another order or with other bytes, known when their session has ended
 */
export function serveRealtime(server, counter, faults) {
  const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false })
  server.on('upgrade', (request, connection, head) => {
    const isBeta = request.headers['openai-beta'] !== undefined
    if (request.headers.authorization !== `Bearer ${UPSTREAM_KEY}` || isBeta) {
      return connection.end(`HTTP/1.1 ${isBeta ? 400 : 401} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`)
    }
    sockets.handleUpgrade(request, connection, head, (socket) => {
      faults.open += 1
      converse(socket, counter, faults)
    })
  })
}
