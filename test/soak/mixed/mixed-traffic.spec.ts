import { once } from 'node:events'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createNetServer, type Server as NetServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { WebSocketServer } from 'ws'
import { childrenOf } from '../../cluster/daemon.js'
import { eventually } from '../../support/eventually.js'
import { Random } from '../soak-records.js'
import { type Ending, HttpCaller, RealtimeTalk } from './http-caller.js'
import { type MixedStage, startStage } from './mixed-run.js'
import type { Traffic } from './mixed-traffic.js'
import { startSurroundings } from './surroundings.js'

describe('mixed stage', () => {
  /** For a PostgreSQL of its own. */
  const PATIENCE_MS = 120_000

  /** Servers that listen in this process. */
  const servers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'TCPServerWrap').length

  /** Its servers and the processes that it has started are those there were before. */
  async function expectNothingLeft(work: () => Promise<void>): Promise<void> {
    const before = [servers(), await childrenOf(process.pid)]
    await work()
    expect(await childrenOf(process.pid)).toEqual(before[1])
    // The loop gives a closed one back in one of its next turns.
    await eventually(() => servers() === before[0])
  }

  it('leaves nothing of a stage behind whose gateway refuses its configuration', async () => {
    await expectNothingLeft(async () => {
      // A limit below 0.
      const started = startStage({ workers: -1000, runMs: 1, sampleMs: 1, seed: 1 })
      await expect(started).rejects.toThrow('the gateway ended (1)')
    })
  })

  it(
    'leaves nothing of the surroundings behind where Redis does not start',
    async () => {
      const programs = await mkdtemp(join(tmpdir(), 'soak-programs-'))
      const { PATH = '' } = process.env
      process.env.PATH = `${programs}:${PATH}`
      try {
        const redis = join(programs, 'redis-server')
        await writeFile(redis, '#!/bin/sh\necho out of order\nexit 3\n')
        await chmod(redis, 0o755)
        await expectNothingLeft(async () => {
          const started = startSurroundings('postgres')
          await expect(started).rejects.toThrow('redis-server ended with code 3:\nout of order')
        })
      } finally {
        process.env.PATH = PATH
        await rm(programs, { recursive: true, force: true })
      }
    },
    PATIENCE_MS,
  )
})

describe('mixed traffic', () => {
  /** So many that each model, format and kind of answer is among them. */
  const CALLS: readonly (readonly [Traffic, number])[] = [
    ['chat', 5],
    ['chatStream', 15],
    ['messagesStream', 15],
    ['speech', 40],
    ['transcription', 15],
    // Followed up to its end it takes two seconds.
    ['task', 6],
  ]

  let stage: MixedStage
  beforeAll(async () => {
    stage = await startStage({ workers: 1, runMs: 1, sampleMs: 1, seed: 1 })
  })
  afterAll(() => stage.close())

  describe('What callers of the soak are answered while no upstream fails', () => {
    it.each(CALLS)('is never taken for broken (%s)', async (kind, calls) => {
      const random = new Random(3)
      const endings = new Set<string>()
      // One by one: the narrow key has few places, and what it has counts for all of a minute.
      for (let call = 0; call < calls; call += 1) endings.add(await stage.traffic.call(kind, random))
      // Some leave the events of a task before its end, and the narrow key is limited.
      expect([...endings].filter((ending) => ending !== 'left' && ending !== 'limited')).toEqual(['answered'])
    })

    it('is refused where it is to be', async () => {
      expect(await stage.traffic.call('refused', new Random(1))).toBe('refused')
    })
  })
})

describe('http caller', () => {
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

    it('has failed if the last event of its kind is unknown', async () => {
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
})

describe('realtime talk', () => {
  const KEY = 'soak-caller-canary'

  let close: () => void = () => undefined
  afterEach(() => {
    close()
  })

  const urlOf = (address: AddressInfo | string | null): string => `ws://127.0.0.1:${(address as AddressInfo).port}`

  /** A gateway whose only answer has this status at its end. */
  async function startSessions(status: string): Promise<string> {
    const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
    await once(server, 'listening')
    close = () => {
      server.close()
    }
    server.on('connection', (socket) => {
      const say = (event: object): void => {
        socket.send(JSON.stringify(event))
      }
      say({ type: 'session.created' })
      socket.on('message', (text: Buffer) => {
        if (!text.toString().includes('"response.create"')) return
        say({ type: 'response.created' })
        say({ type: 'response.done', response: { status } })
      })
    })
    return urlOf(server.address())
  }

  /** A gateway that takes connections and answers nothing. */
  async function startSilence(): Promise<string> {
    const server: NetServer = createNetServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    close = () => {
      server.close()
    }
    server.on('connection', (socket) => socket.resume().on('error', () => undefined))
    return urlOf(server.address())
  }

  describe('A realtime session of the soak', () => {
    it.each([
      ['completed', 'answered'],
      ['failed', 'failed'],
      ['incomplete', 'failed'],
      ['cancelled', 'failed'],
    ])('whose answer is %s has %s', async (status, ending) => {
      const talk = new RealtimeTalk(await startSessions(status))
      expect(await talk.hold(KEY, 'whole')).toBe(ending)
      expect(talk.hung).toEqual([])
    })

    it('has failed, and is listed, if its handshake gets no response', async () => {
      const talk = new RealtimeTalk(await startSilence(), 100)
      expect(await talk.hold(KEY, 'dropped')).toBe('failed')
      expect(talk.hung).toEqual(['dropped'])
    })
  })
})
