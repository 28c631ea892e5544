/**
 * The upstream of the benchmark: responds as fast as node:http can, and counts requests and responses.
 * Environment: PORT. `GET /__bench/counters` returns the counters, `POST /__bench/verify-next-upload` has the next
 * upload hashed, `GET /__bench/last-upload` returns that hash, `POST /__bench/reset-peak` forgets how many paced streams
 * were open at once, `POST /__bench/adopt-tasks?<count>,<created at>` adds video tasks that are under
 * way.
 */
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import { VIDEO_PATH, VideoTasks } from './tasks-wire.mjs'
import { serveRealtime } from './upstream-realtime.mjs'
import {
  chatAnswer,
  closingFrames,
  contentFrame,
  messagesAnswer,
  messagesWrites,
  readOrders,
  SPEECH_BYTES,
  speechPiece,
  STREAM_CHUNKS,
  streamWrites,
  UPSTREAM_KEY,
} from './wire.mjs'

const CHAT_ANSWER = chatAnswer()
const MESSAGES_ANSWER = messagesAnswer()
const MESSAGES_STREAM = messagesWrites(STREAM_CHUNKS)
const STREAMS = { plain: streamWrites(STREAM_CHUNKS, false), usage: streamWrites(STREAM_CHUNKS, true) }
const SPEECH_PIECE = speechPiece()
const TRANSCRIPT = Buffer.from(JSON.stringify({ text: 'The gateway relays what it was sent.' }))
const SSE_HEADERS = { 'Content-Type': 'text/event-stream; charset=utf-8', 'Cache-Control': 'no-store' }

const newCounter = () => ({ requests: 0, answers: 0, aborted: 0, bytesIn: 0, bytesOut: 0 })
const counters = {
  chat: newCounter(),
  stream: newCounter(),
  messages: newCounter(),
  messagesStream: newCounter(),
  speech: newCounter(),
  upload: newCounter(),
  realtime: newCounter(),
  videoCreate: newCounter(),
  videoRead: newCounter(),
}
const realtime = { open: 0, outOfOrder: 0, changed: 0 }
const open = { now: 0, peak: 0 }
const upload = { verifyNext: false, last: null }
const videoTasks = new VideoTasks()

/** Counted when the end is handed over, so the count is there before a caller can have read the end. */
function finish(response, counter, lastBytes) {
  counter.answers += 1
  counter.bytesOut += lastBytes?.length ?? 0
  response.end(lastBytes)
}

/** Writes `next()` until it returns undefined, one buffer per turn of the event loop, never ahead of a slow reader. */
function writeAll(response, counter, next) {
  const step = () => {
    if (response.destroyed) return
    const buffer = next()
    if (buffer === undefined) return finish(response, counter)
    counter.bytesOut += buffer.length
    if (response.write(buffer)) setImmediate(step)
    else response.once('drain', step)
  }
  step()
}

/** One frame per write every `paceMs`; each frame carries its send time in microseconds of the monotonic clock. */
function writePaced(response, counter, { frames, paceMs }, withUsage) {
  let index = 0
  open.now += 1
  open.peak = Math.max(open.peak, open.now)
  const write = () => {
    if (index === frames) {
      clearInterval(timer)
      return finish(response, counter, Buffer.from(closingFrames(withUsage)))
    }
    const stamp = `t${String(process.hrtime.bigint() / 1000n).padStart(16, '0')}`
    const bytes = Buffer.from(contentFrame(index++, frames, withUsage, stamp))
    counter.bytesOut += bytes.length
    response.write(bytes)
  }
  const timer = setInterval(write, paceMs)
  response.on('close', () => {
    clearInterval(timer)
    open.now -= 1
  })
  write()
}

function answerChat(body, response) {
  const request = JSON.parse(body.toString())
  const counter = request.stream === true ? counters.stream : counters.chat
  watch(response, counter, body.length)
  if (request.stream !== true) {
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': CHAT_ANSWER.length })
    return finish(response, counter, CHAT_ANSWER)
  }
  const withUsage = request.stream_options?.include_usage === true
  const orders = readOrders(body)
  response.writeHead(200, SSE_HEADERS)
  if (orders.paceMs !== undefined) return writePaced(response, counter, orders, withUsage)
  const writes = withUsage ? STREAMS.usage : STREAMS.plain
  let index = 0
  writeAll(response, counter, () => writes[index++])
}

function answerMessages(body, response) {
  const isStreamed = JSON.parse(body.toString()).stream === true
  const counter = isStreamed ? counters.messagesStream : counters.messages
  watch(response, counter, body.length)
  if (!isStreamed) return sendJson(response, counter, 200, MESSAGES_ANSWER)
  response.writeHead(200, SSE_HEADERS)
  let index = 0
  writeAll(response, counter, () => MESSAGES_STREAM[index++])
}

function answerSpeech(body, response) {
  watch(response, counters.speech, body.length)
  let left = readOrders(body).bytes ?? SPEECH_BYTES
  response.writeHead(200, { 'Content-Type': 'audio/mpeg' })
  writeAll(response, counters.speech, () => {
    if (left === 0) return undefined
    const piece = left >= SPEECH_PIECE.length ? SPEECH_PIECE : SPEECH_PIECE.subarray(0, left)
    left -= piece.length
    return piece
  })
}

function answerUpload(request, response) {
  watch(response, counters.upload, 0)
  const kept = upload.verifyNext ? [] : undefined
  upload.verifyNext = false
  request.on('data', (bytes) => {
    counters.upload.bytesIn += bytes.length
    kept?.push(bytes)
  })
  request.on('end', () => {
    if (kept) upload.last = fileOf(Buffer.concat(kept), request.headers['content-type'] ?? '')
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': TRANSCRIPT.length })
    finish(response, counters.upload, TRANSCRIPT)
  })
}

function answerVideoCreate(body, response) {
  watch(response, counters.videoCreate, body.length)
  sendJson(response, counters.videoCreate, 200, videoTasks.create(body))
}

function answerVideoRead(id, response) {
  watch(response, counters.videoRead, 0)
  const answer = videoTasks.read(id)
  if (answer) sendJson(response, counters.videoRead, 200, answer)
  else sendJson(response, counters.videoRead, 404, Buffer.from('{"code":1203,"message":"unknown"}'))
}

function sendJson(response, counter, status, bytes) {
  response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': bytes.length })
  finish(response, counter, bytes)
}

function fileOf(body, contentType) {
  const boundary = /boundary="?([^";]+)/.exec(contentType)?.[1] ?? ''
  const named = body.indexOf('filename=')
  const start = body.indexOf('\r\n\r\n', named) + 4
  const file = body.subarray(start, body.indexOf(`\r\n--${boundary}`, start))
  return { bytes: file.length, sha256: createHash('sha256').update(file).digest('hex') }
}

function watch(response, counter, bytesIn) {
  counter.requests += 1
  counter.bytesIn += bytesIn
  response.on('close', () => {
    if (!response.writableFinished) counter.aborted += 1
  })
}

function answerControl(request, response) {
  if (request.url === '/__bench/verify-next-upload') upload.verifyNext = true
  if (request.url === '/__bench/reset-peak') open.peak = open.now
  const adopted = /^\/__bench\/adopt-tasks\?(\d+),(\d+)$/.exec(request.url)
  if (adopted) videoTasks.adopt(Number(adopted[1]), Number(adopted[2]))
  const state = request.url === '/__bench/last-upload' ? upload.last : { counters, open, realtime }
  response.writeHead(200, { 'Content-Type': 'application/json' })
  response.end(JSON.stringify(state))
}

function answerBody(request, response, answer) {
  const parts = []
  request.on('data', (bytes) => parts.push(bytes))
  request.on('end', () => answer(parts.length === 1 ? parts[0] : Buffer.concat(parts), response))
}

const keyOf = ({ authorization, 'x-api-key': key }) => key ?? authorization?.slice('Bearer '.length)

const server = createServer((request, response) => {
  if (request.url?.startsWith('/__bench/')) return answerControl(request, response)
  if (keyOf(request.headers) !== UPSTREAM_KEY) return response.writeHead(401).end()
  if (request.url === '/v1/chat/completions') return answerBody(request, response, answerChat)
  if (request.url === '/v1/messages') return answerBody(request, response, answerMessages)
  if (request.url === '/v1/audio/speech') return answerBody(request, response, answerSpeech)
  if (request.url === '/v1/audio/transcriptions') return answerUpload(request, response)
  if (request.url === VIDEO_PATH) return answerBody(request, response, answerVideoCreate)
  if (request.url?.startsWith(`${VIDEO_PATH}/`)) {
    return answerVideoRead(request.url.slice(VIDEO_PATH.length + 1), response)
  }
  response.writeHead(404).end()
})
server.keepAliveTimeout = 60_000
serveRealtime(server, counters.realtime, realtime)
server.listen(Number(process.env.PORT), '127.0.0.1')
process.stdin.on('end', () => process.exit(0)).resume()
