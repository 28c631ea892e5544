/**
 * The yardstick: the least a Node proxy can do and still be a gateway. A bare node:http server, the caller's key looked
 * up by its SHA-256, the body read, parsed and minimally checked, its bytes sent on with undici, the answer piped back.
 * Uploads are piped through unread, sockets are joined (bare-realtime.mjs); of video tasks it remembers nothing: creates
 * and reads are passed on. Environment: PORT, UPSTREAM.
 */
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import { Pool } from 'undici'
import { pipeSockets } from './bare-realtime.mjs'
import { CALLERS_VIDEO_PATH, VIDEO_PATH } from './tasks-wire.mjs'
import { CALLER_KEY, UPSTREAM_KEY } from './wire.mjs'

const sha256 = (text) => createHash('sha256').update(text).digest('hex')
const callers = new Map([[sha256(CALLER_KEY), { id: 'bench' }]])
const pool = new Pool(process.env.UPSTREAM ?? '')

const isKnown = ({ headers }) => callers.has(sha256((headers.authorization ?? '').slice('Bearer '.length)))

const isChat = (body) => typeof body.model === 'string' && Array.isArray(body.messages) && body.messages.length > 0
const isSpeech = (body) => typeof body.model === 'string' && typeof body.input === 'string' && body.input !== ''
const isVideo = (body) => typeof body.prompt === 'string' && body.prompt !== ''
const CHECKS = {
  '/v1/chat/completions': isChat,
  '/v1/messages': isChat,
  '/v1/audio/speech': isSpeech,
  [VIDEO_PATH]: isVideo,
}

function refuse(response, status, message) {
  const type = status === 401 ? 'authentication_error' : status < 500 ? 'invalid_request_error' : 'upstream_error'
  response.writeHead(status, { 'Content-Type': 'application/json' })
  response.end(JSON.stringify({ error: { message, type, param: null, code: null } }))
}

async function relay(request, response, body, contentLength) {
  const headers = { authorization: `Bearer ${UPSTREAM_KEY}` }
  if (body !== undefined) headers['content-type'] = request.headers['content-type']
  if (contentLength !== undefined) headers['content-length'] = contentLength
  const answer = await pool.request({ method: request.method, path: request.url, headers, body })
  const answerHeaders = { 'Content-Type': answer.headers['content-type'] }
  const length = answer.headers['content-length']
  if (length !== undefined) answerHeaders['Content-Length'] = length
  response.writeHead(answer.statusCode, answerHeaders)
  response.on('close', () => {
    if (!response.writableFinished) answer.body.destroy()
  })
  answer.body.on('error', () => response.destroy())
  answer.body.pipe(response)
}

function sendOn(request, response, body, contentLength) {
  relay(request, response, body, contentLength).catch((error) => {
    if (response.headersSent) response.destroy()
    else refuse(response, 502, String(error))
  })
}

function relayJson(request, response, check) {
  const parts = []
  request.on('data', (bytes) => parts.push(bytes))
  request.on('end', () => {
    const body = parts.length === 1 ? parts[0] : Buffer.concat(parts)
    try {
      if (!check(JSON.parse(body.toString()))) return refuse(response, 400, 'A required field is missing.')
    } catch {
      return refuse(response, 400, 'The body is not JSON.')
    }
    sendOn(request, response, body)
  })
}

const server = createServer((request, response) => {
  if (request.url === '/health/ready') return response.writeHead(200).end()
  if (!isKnown(request)) return refuse(response, 401, 'The key is not known.')
  if (request.url.startsWith(CALLERS_VIDEO_PATH)) request.url = request.url.replace(CALLERS_VIDEO_PATH, VIDEO_PATH)
  const check = CHECKS[request.url]
  if (check) return relayJson(request, response, check)
  if (request.url === '/v1/audio/transcriptions') {
    return sendOn(request, response, request, request.headers['content-length'])
  }
  if (request.method === 'GET' && request.url.startsWith(`${VIDEO_PATH}/`)) return sendOn(request, response)
  refuse(response, 404, 'Unknown path.')
})
server.keepAliveTimeout = 60_000
pipeSockets(server, process.env.UPSTREAM ?? '', isKnown)
server.listen(Number(process.env.PORT), '127.0.0.1')
process.stdin.on('end', () => process.exit(0)).resume()
