/** The yardstick of realtime: the least that joins two sockets. The key is looked up, the upstream dialled, bytes passed. */
import { WebSocket, WebSocketServer } from 'ws'
import { UPSTREAM_KEY } from './wire.mjs'

const NO_COMPRESSION = { perMessageDeflate: false }
const ABNORMAL = [1005, 1006]

function pipe(from, to) {
  from.on('message', (bytes, isBinary) => to.send(bytes, { binary: isBinary }))
  from.on('close', (code, reason) => (ABNORMAL.includes(code) ? to.close() : to.close(code, reason)))
  from.on('error', () => to.terminate())
  from.resume()
}

const refuse = (connection, status) =>
  connection.end(`HTTP/1.1 ${status} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`)

/**
 * Takes the upgrades of a server.
 * @param {(request: import('node:http').IncomingMessage) => boolean} isKnown whether the caller's key is known
 */
export function pipeSockets(server, upstreamUrl, isKnown) {
  const sockets = new WebSocketServer({ noServer: true, ...NO_COMPRESSION })
  const address = upstreamUrl.replace(/^http/, 'ws')
  const headers = { Authorization: `Bearer ${UPSTREAM_KEY}` }
  server.on('upgrade', (request, connection, head) => {
    if (!isKnown(request)) return refuse(connection, 401)
    const upstream = new WebSocket(address + request.url, { headers, ...NO_COMPRESSION })
    upstream.once('error', () => refuse(connection, 502))
    upstream.once('open', () => {
      upstream.pause()
      upstream.removeAllListeners('error')
      sockets.handleUpgrade(request, connection, head, (client) => {
        pipe(client, upstream)
        pipe(upstream, client)
      })
    })
  })
}
