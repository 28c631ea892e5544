import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { form, TRANSCRIPTIONS } from '../support/audio-uploads.js'
import { CHAT_PATH, chatText } from '../support/chat-bodies.js'
import { TEST_KEY } from '../support/gateway.js'
import { startP1Gateway, type P1Gateway } from '../support/p1-gateway.js'
import { MULTIPART, multipartBytes } from '../support/upload-server.js'

let lab: P1Gateway

beforeAll(async () => {
  lab = await startP1Gateway()
})
afterEach(() => {
  lab.simulator.reset()
})
afterAll(() => lab.close())

interface Conversation {
  readonly socket: Socket
  readonly heard: () => string
  /** Resolves once what was heard holds the pattern, or the other side has closed. */
  readonly hear: (pattern: RegExp) => Promise<string>
}

async function converse(lines: readonly string[]): Promise<Conversation> {
  const socket = connect(Number(new URL(lab.gateway.url).port), '127.0.0.1')
  let text = ''
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1')
    socket.emit('heard')
  })
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  return {
    socket,
    heard: () => text,
    hear: async (pattern) => {
      while (!pattern.test(text) && !socket.closed) await Promise.race([once(socket, 'heard'), once(socket, 'close')])
      return text
    },
  }
}

const bearer = `authorization: Bearer ${TEST_KEY}`
const upgrade = (path: string, ...more: string[]): string[] => [
  `GET ${path} HTTP/1.1`,
  'host: gateway',
  'connection: Upgrade',
  'upgrade: websocket',
  'sec-websocket-version: 13',
  'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==',
  ...more,
]
const bodyOf = (answer: string): unknown => JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4))

describe('an upgrade', () => {
  it.each([
    ['to realtime without a model', '/v1/realtime', [bearer]],
    ['to an unknown path', '/v1/nowhere', [bearer]],
    ['to an unknown path without a key', '/nowhere', []],
    ['to a path of plain requests', '/v1/models', [bearer]],
  ])('%s is answered with a status and, when it is an error, with JSON', async (_name, path, headers) => {
    const { hear, socket } = await converse(upgrade(path, ...headers))
    const answer = await hear(/\}\s*$/)
    socket.destroy()
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1])
    expect(status).not.toBe(101)
    expect(answer).toMatch(/\r\ncontent-type: application\/json/i)
    expect(answer).toMatch(/\r\nx-request-id: /i)
    const expected =
      path === '/v1/models' ? { object: 'list' } : { error: { message: expect.any(String), code: expect.anything() } }
    expect(bodyOf(answer)).toMatchObject(expected)
    if (path !== '/v1/models') expect(status).toBeGreaterThanOrEqual(400)
  })
})

const chat = chatText('Hello')
const upload = multipartBytes(form([['model', 'whisper-1']]))
const posting = (path: string, length: number, ...more: string[]): string[] => [
  `POST ${path} HTTP/1.1`,
  'host: gateway',
  'expect: 100-continue',
  'connection: close',
  `content-length: ${length}`,
  ...more,
]

describe('a client who waits for 100 Continue', () => {
  it.each([
    ['a chat completion', CHAT_PATH, 'content-type: application/json', Buffer.from(chat)],
    ['a transcription', TRANSCRIPTIONS, `content-type: ${MULTIPART['content-type']}`, upload],
  ])('sends %s after it was told to', async (_name, path, contentType, body) => {
    const { socket, hear, heard } = await converse(posting(path, body.length, bearer, contentType))
    await hear(/100 Continue\r\n\r\n/)
    expect(heard()).toBe('HTTP/1.1 100 Continue\r\n\r\n')
    socket.write(body)
    expect(await hear(/\r\n\r\n\{[^]*\}$/)).toMatch(/HTTP\/1\.1 200 OK/)
    expect(lab.simulator.requests).toHaveLength(1)
  })

  it.each([
    ['without a key', 401, [] as string[], 100],
    ['with an unknown key', 401, ['authorization: Bearer unknown'], 100],
    ['with a body too large', 413, [bearer], 100_000_000],
    ['with a compressed body', 415, [bearer, 'content-encoding: gzip'], 100],
    ['with another content type', 415, [bearer], 100],
  ])('%s is refused with %i before it sends anything', async (name, status, headers, length) => {
    for (const [path, contentType] of [
      [CHAT_PATH, 'application/json'],
      [TRANSCRIPTIONS, MULTIPART['content-type']],
    ] as const) {
      const type = name.includes('content type') ? 'text/plain' : contentType
      const { socket, hear, heard } = await converse(posting(path, length, ...headers, `content-type: ${type}`))
      await hear(/\}$/)
      socket.destroy()
      expect(heard()).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
      expect(heard()).not.toContain('100 Continue')
      expect(bodyOf(heard())).toMatchObject({ error: { type: expect.any(String) } })
    }
    expect(lab.simulator.requests).toEqual([])
  })
})
