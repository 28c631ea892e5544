import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { expect } from '@jest/globals'
import { type WebSocket, WebSocketServer } from 'ws'
import { GatewayError } from '../../src/core/errors.js'
import type { RequestContext } from '../../src/core/request-context.js'
import { P2Session } from '../../src/providers/p2/p2-socket.js'
import { P3AudioSource, type P3Envelope } from '../../src/providers/p3/p3-stream.js'
import type { UpstreamTarget } from '../../src/upstream/upstream-client.js'
import { UpstreamSockets } from '../../src/upstream/websocket-client.js'
import { ManualSource, RecordingSink } from './byte-streams.js'
import { eventually } from './eventually.js'
import { attemptOf, GENEROUS_TIMEOUTS, newCall, targetOf } from './raw-upstream.js'

/** A WebSocket server that hands each first message to the test, which answers with whatever it likes. */
export interface P2Upstream {
  readonly target: UpstreamTarget
  /** The messages received, in order, over all connections. */
  readonly received: readonly Buffer[]
  /** The server's ends of all connections, in order. */
  readonly sockets: readonly WebSocket[]
  /** Close codes the server has seen, in order. */
  readonly closeCodes: readonly number[]
  readonly close: () => Promise<void>
}

export async function startP2Upstream(
  answer: (socket: WebSocket, message: Buffer, index: number) => void,
): Promise<P2Upstream> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  const received: Buffer[] = []
  const sockets: WebSocket[] = []
  const closeCodes: number[] = []
  server.on('connection', (socket) => {
    const index = sockets.push(socket) - 1
    socket.on('message', (message: Buffer) => {
      received.push(message)
      answer(socket, message, index)
    })
    socket.on('close', (code) => closeCodes.push(code))
    socket.on('error', () => undefined)
  })
  await once(server, 'listening')
  return {
    target: targetOf((server.address() as AddressInfo).port),
    received,
    sockets,
    closeCodes,
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.terminate()
      await closed
    },
  }
}

function frame(head: readonly number[], word: number | undefined, payload: Buffer): Buffer {
  const words = word === undefined ? [payload.length] : [word, payload.length]
  const numbers = Buffer.alloc(words.length * 4)
  words.forEach((value, index) => numbers.writeInt32BE(value, index * 4))
  return Buffer.concat([Buffer.from(head), numbers, payload])
}

export const acknowledgement = (): Buffer => frame([0x11, 0xb0, 0, 0], undefined, Buffer.alloc(0))
export const audio = (bytes: string | Buffer): Buffer => frame([0x11, 0xb1, 0, 0], 1, Buffer.from(bytes))
export const lastAudio = (bytes: string | Buffer = ''): Buffer => frame([0x11, 0xb3, 0, 0], -2, Buffer.from(bytes))
export const frontEnd = (): Buffer => frame([0x11, 0xc1, 0x10, 0], 1, Buffer.from('{}'))
export const errorFrame = (code: number, text: string): Buffer => frame([0x11, 0xf0, 0x10, 0], code, Buffer.from(text))

const audioOf = (text: string): string => Buffer.from(text).toString('hex')

/** An answer in one object; `more` lies over it. */
export const json = (audio: string, status: number | undefined, more: object = {}): string =>
  JSON.stringify({ data: { audio: audioOf(audio), status, ced: '' }, trace_id: 't', ...more })

/** The same as one event of a stream. */
export const event = (audio: string, status = 1, more: object = {}): string => `data: ${json(audio, status, more)}\n\n`

export interface Heard {
  readonly audio: string
  /** `end`, or what went wrong. */
  readonly ending: string | undefined
  readonly envelopes: readonly P3Envelope[]
  readonly asked: readonly string[]
  readonly error?: GatewayError
}

/** The error of a code other than 0. */
export const REFUSED = new GatewayError('rate_limited', 'refused')

/** Hears an answer that arrives in these pieces and, unless it is left open, ends. */
export function hear(pieces: readonly (string | Buffer)[], ending: 'end' | 'open' | GatewayError = 'end'): Heard {
  const body = new ManualSource()
  const sink = new RecordingSink()
  const envelopes: P3Envelope[] = []
  const source = new P3AudioSource(body, (envelope) => {
    envelopes.push(envelope)
    if (envelope.code !== 0) throw REFUSED
  })
  source.start(sink)
  body.data(...pieces)
  if (ending === 'end') body.end()
  else if (ending !== 'open') body.fail(ending)
  const isEnd = sink.ending === 'end' || sink.ending === undefined
  const heard = { audio: sink.text, envelopes, asked: body.asked }
  return isEnd
    ? { ...heard, ending: sink.ending as string | undefined }
    : { ...heard, ending: (sink.ending as GatewayError).message, error: sink.ending as GatewayError }
}

export const MAXIMUM_MESSAGE_BYTES = 1_000_000
export const REQUEST = Buffer.from('a request')

export interface Begun {
  readonly session: P2Session
  readonly sink: RecordingSink
  readonly socket: WebSocket
  readonly call: RequestContext
  readonly ended: () => Promise<void>
}

export interface BeginOptions {
  readonly timeouts?: object
  readonly totalMs?: number
  readonly call?: RequestContext
  readonly sampleBytes?: number
}

/** Sessions on an upstream that does what a test says. */
export class P2SessionLab {
  sockets = new UpstreamSockets()
  upstream: P2Upstream | undefined

  /** A session on an upstream that sends these messages in answer to the request, or does what it likes. */
  readonly begin = async (
    answer: readonly Buffer[] | ((socket: WebSocket) => void),
    { timeouts = {}, totalMs = 60_000, call = newCall(), ...options }: BeginOptions = {},
  ): Promise<Begun> => {
    this.upstream = await startP2Upstream((socket) => {
      if (typeof answer === 'function') answer(socket)
      else for (const message of answer) socket.send(message)
    })
    const deadlineAtMs = performance.now() + totalMs
    const request = { path: '/', headers: {}, maximumMessageBytes: MAXIMUM_MESSAGE_BYTES }
    // The dial counts its own time.
    const { socket } = await this.sockets.dial(request, this.upstream.target, attemptOf(newCall()), deadlineAtMs)
    if (socket === undefined) throw new Error('refused')
    const session = new P2Session(socket, REQUEST, {
      exchange: attemptOf(call),
      deadlineAtMs,
      timeouts: { ...GENEROUS_TIMEOUTS, ...timeouts },
      refusal: (code, text) => new GatewayError('conflict', `${code} ${text}`),
      ...options,
    })
    const sink = new RecordingSink()
    session.start(sink)
    return { session, sink, socket, call, ended: () => eventually(() => sink.ending !== undefined) }
  }

  /** Nothing of a session stays behind at either end. */
  readonly expectNothingLeft = async ({ socket }: Begun): Promise<void> => {
    await eventually(() => socket.readyState === socket.CLOSED && this.upstream?.closeCodes.length === 1)
    // One listener of the socket's owner stays for errors, as long as the socket lives.
    expect(['message', 'close', 'error'].map((name) => socket.listenerCount(name))).toEqual([0, 0, 1])
  }

  /** Ends what runs, and makes ready for the next test. */
  async reset(): Promise<void> {
    this.sockets.onApplicationShutdown()
    await this.upstream?.close()
    this.upstream = undefined
    this.sockets = new UpstreamSockets()
  }
}
