import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { type Ending, HttpCaller } from './http-caller.js'

const CHAT = '/v1/chat/completions'
const MESSAGES = '/v1/messages'
const SPEECH = '/v1/audio/speech'
const TRANSCRIPTIONS = '/v1/audio/transcriptions'
const TASK = '/vidgen/v1/videos/text2video/1/events'
const EVENTS = { 'content-type': 'text/event-stream; charset=utf-8' }
const DONE = 'data: [DONE]'

/** Event streams of each kind, as lines: all but the end, and the end. */
const STREAMS: readonly (readonly [kind: string, path: string, begin: string, end: string])[] = [
  ['chat', CHAT, 'data: {"choices":[{"delta":{"content":"[DONE]"}}]}\n\n', `${DONE}\n\n`],
  [
    'messages',
    MESSAGES,
    'event: message_delta\ndata: {}\n\n',
    'event: message_stop\ndata: {"type":"message_stop" }\n\n',
  ],
  ['speech', SPEECH, 'data: {"audio":"AAAA"}\r\n\r\n', `data: {"type":"speech.audio.done"}\r\n\r\n${DONE}\r\n\r\n`],
  [
    'a transcript',
    TRANSCRIPTIONS,
    'data: {"delta":"What"}\r\n\r\n',
    `data: {"type":"transcript.text.done","text":"What"}\r\n\r\n${DONE}\r\n\r\n`,
  ],
  [
    'the events of a task',
    TASK,
    'event: task\ndata: {"task_status":"processing"}\n\n',
    'event: task\ndata: {"task_status":"succeed","task_result":{}}\n\n',
  ],
]
const ERRORS = {
  [MESSAGES]: 'event: error\ndata: {"type":"error","error":{"type":"api_error"}}\n\n',
} as Readonly<Record<string, string>>
const errorOf = (path: string): string => ERRORS[path] ?? 'data: {"error":{"message":"cut"}}\n\n'
/** More than sockets and readers hold by themselves. */
const LONG = 'data: {"choices":[]}\n\n'.repeat(100_000)

let server: Server
let caller: HttpCaller
let serve: (response: ServerResponse) => void

beforeEach(async () => {
  server = createServer((request, response) => {
    request.resume().once('end', () => {
      serve(response)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  caller = new HttpCaller(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})

afterEach(async () => {
  await caller.close()
  server.closeAllConnections()
  server.close()
})

function ask(path: string, answer: (response: ServerResponse) => void, stayMs?: number): Promise<Ending> {
  serve = answer
  return caller.ask({ path, json: {}, ...(stayMs === undefined ? {} : { stayMs }) }, 'wide')
}
/** An event stream that ends properly, whatever stands in it. */
const streamed = (path: string, text: string): Promise<Ending> =>
  ask(path, (response) => response.writeHead(200, EVENTS).end(text))

describe('A call of the soak', () => {
  it.each(STREAMS)('is answered by an event stream that is whole (%s)', async (_, path, begin, end) => {
    expect(await streamed(path, begin.repeat(500) + end)).toBe('answered')
    expect(await streamed(path, end)).toBe('answered')
  })

  it.each(STREAMS)(
    'has failed where an event stream ends properly, but not with its own end (%s)',
    async (...stream) => {
      const [, path, begin, end] = stream
      expect(await streamed(path, begin)).toBe('failed')
      expect(await streamed(path, '')).toBe('failed')
      expect(await streamed(path, end + begin)).toBe('failed')
      expect(await streamed(path, begin + end.slice(0, -2))).toBe('failed')
    },
  )

  it.each(STREAMS)('has failed where an event stream ends with an error (%s)', async (_, path, begin, end) => {
    expect(await streamed(path, begin + errorOf(path))).toBe('failed')
    expect(await streamed(path, errorOf(path))).toBe('failed')
    expect(await streamed(path, begin + errorOf(path) + end)).toBe('failed')
  })

  it('has failed where nobody knows how an event stream of its kind ends', async () => {
    expect(await streamed('/v1/unheard-of', `${DONE}\n\n`)).toBe('failed')
  })

  it('is answered and has failed likewise where the answer is long', async () => {
    expect(await streamed(CHAT, `${LONG}${DONE}\n\n`)).toBe('answered')
    expect(await streamed(CHAT, LONG)).toBe('failed')
  })

  it('is answered by any other body, by what its status says', async () => {
    const json = { 'content-type': 'application/json' }
    const answer = (status: number, headers = {}): Promise<Ending> =>
      ask(CHAT, (response) => response.writeHead(status, { ...json, ...headers }).end('{}'))
    const endings = [await answer(200), await answer(404), await answer(429), await answer(503)]
    expect(endings).toEqual(['answered', 'refused', 'refused', 'failed'])
    expect(await answer(429, { 'x-gateway-limit': 'concurrency' })).toBe('limited')
  })

  it('has failed where its answer is cut, however much of it has come', async () => {
    const cut = (response: ServerResponse, text: string): void => {
      response.writeHead(200, { 'content-type': 'audio/wav' }).write(text, () => response.destroy())
    }
    for (const text of ['RIFF', LONG]) {
      expect(
        await ask(SPEECH, (response) => {
          cut(response, text)
        }),
      ).toBe('failed')
    }
  })

  it('is left by a caller who goes in the middle of the answer', async () => {
    const unending = (response: ServerResponse): void => {
      response.writeHead(200, EVENTS).write('data: {"choices":[]}\n\n')
    }
    expect(await ask(CHAT, unending, 50)).toBe('left')
  })
})
