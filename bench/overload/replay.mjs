/**
 * Answers each kind of request with the bytes that the bench upstream answered the first of its kind with, in one write: an upstream
 * for measurements of overload on two processors, where it has to cost next to nothing. Environment: PORT, UPSTREAM_PORT.
 */
import { connect, createServer } from 'node:net'
import { ResponseParser } from '../driver/response-parser.mjs'

const HEAD_END = '\r\n\r\n'
const answers = new Map()

createServer((socket) => {
  let received = ''
  socket.on('error', () => socket.destroy())
  socket.on('data', async (chunk) => {
    received += chunk.latin1Slice()
    const request = received.slice(0, requestLength(received))
    if (request === '') return
    received = received.slice(request.length)
    socket.write(await answerOf(request))
  })
}).listen(Number(process.env.PORT), '127.0.0.1', 4_096)

/** Of the first request in a text; 0 while it is not complete. */
function requestLength(text) {
  const end = text.indexOf(HEAD_END)
  if (end === -1) return 0
  const bodyLength = Number(/\r\ncontent-length: *(\d+)/i.exec(text.slice(0, end))?.[1] ?? 0)
  const length = end + HEAD_END.length + bodyLength
  return text.length >= length ? length : 0
}

function answerOf(request) {
  const path = request.slice(0, request.indexOf(' HTTP/1.1'))
  const kind = `${path} ${request.includes('"stream":true')} ${request.includes('"include_usage":true')}`
  if (!answers.has(kind)) answers.set(kind, record(request))
  return answers.get(kind)
}

function record(request) {
  const parts = []
  const parser = new ResponseParser()
  parser.begin()
  return new Promise((resolve, reject) => {
    const socket = connect(Number(process.env.UPSTREAM_PORT), '127.0.0.1', () => socket.write(request, 'latin1'))
    socket.on('error', reject)
    socket.on('data', (chunk) => {
      parts.push(chunk)
      if (!parser.feed(chunk, chunk.length)) return
      socket.destroy()
      resolve(Buffer.concat(parts))
    })
  })
}
