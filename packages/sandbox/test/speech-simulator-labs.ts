import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { expect } from '@jest/globals'
import { type P2SimulatorOptions, startP2Simulator } from '@multi-model-gateway/sandbox/p2/p2.simulator.js'
import { type P3SimulatorOptions, startP3Simulator } from '@multi-model-gateway/sandbox/p3/p3.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator-server.js'
import type { SocketSimulator } from '@multi-model-gateway/sandbox/server/websocket-protocol.js'
import { WebSocket } from 'ws'

export const P2_PATH = '/api/v1/tts/ws_binary'
export const P2_KEY = 'app-1|token-1'
export const P2_AUTHORIZATION = 'Bearer;token-1'

export interface P2FrameSeen {
  /** Type and flags: `b1`, `f0` … */
  readonly kind: string
  /** The frame as it came, in hex. */
  readonly hex: string
  /** The sequence or the error code. */
  readonly number: number | undefined
  readonly payload: Buffer
}

export interface P2Conversation {
  readonly frames: readonly P2FrameSeen[]
  readonly texts: readonly string[]
  /** Payloads of all audio frames, the last one included. */
  readonly audio: Buffer
  readonly closeCode: number
}

/** A good request; each change lies over its section. */
export function p2Json(changes: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {}): object {
  const good = {
    app: { appid: 'app-1', token: 'x', cluster: 'volcano_tts' },
    user: { uid: 'gw-1' },
    audio: { voice_type: 'zh_female_cancan_mars_bigtts', encoding: 'pcm' },
    request: { reqid: randomUUID(), text: 'Ni hao, shijie.', operation: 'submit' },
  }
  const sections = Object.entries(good).map(([name, fields]) => [name, { ...fields, ...changes[name] }])
  return { ...changes, ...(Object.fromEntries(sections) as object) }
}

export function p2Spoken(text: string, audio: object = {}): object {
  return p2Json({ request: { text }, audio: { ...audio } })
}

/** A request frame, by default with the plain header. */
export function p2Frame(json: unknown, header = '11101000', pack = (bytes: Buffer) => bytes): Buffer {
  const payload = pack(Buffer.from(JSON.stringify(json)))
  const size = Buffer.alloc(4)
  size.writeUInt32BE(payload.length)
  return Buffer.concat([Buffer.from(header, 'hex'), size, payload])
}

/** Opens a socket as a bare client does. Rejects with the status and the body when the handshake is refused. */
export async function openP2(url: string, headers: Readonly<Record<string, string>> = {}): Promise<WebSocket> {
  const socket = new WebSocket(url, { headers: { authorization: P2_AUTHORIZATION, ...headers } })
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve)
    socket.once('error', reject)
    socket.once('unexpected-response', (_request, response: IncomingMessage) => {
      void text(response).then((body) => {
        reject(new HandshakeRefused(response.statusCode ?? 0, response.headers, body))
      })
    })
  })
  return socket
}

export class HandshakeRefused extends Error {
  constructor(
    readonly status: number,
    readonly headers: IncomingMessage['headers'],
    readonly body: string,
  ) {
    super(`handshake refused with ${status}`)
  }
}

/** Sends one message and listens until the connection is closed; closes it itself after the last frame. */
export async function converseP2(baseUrl: string, request: object | Buffer | string): Promise<P2Conversation> {
  const socket = await openP2(`${baseUrl}${P2_PATH}`)
  const frames: P2FrameSeen[] = []
  const texts: string[] = []
  socket.on('message', (data: Buffer, isBinary) => {
    if (!isBinary) {
      texts.push(data.toString('utf8'))
      return
    }
    const frame = seen(data)
    frames.push(frame)
    if (frame.kind === 'b3' || frame.kind === 'b2') socket.close(1000)
  })
  const closed = once(socket, 'close')
  socket.send(Buffer.isBuffer(request) || typeof request === 'string' ? request : p2Frame(request))
  const [closeCode] = (await closed) as [number]
  const spoken = frames.filter(({ kind }) => /^b[123]$/.test(kind)).map(({ payload }) => payload)
  return { frames, texts, audio: Buffer.concat(spoken), closeCode }
}

/** Reads a frame by the table of the protocol; a frame it does not fit has an empty payload. */
function seen(data: Buffer): P2FrameSeen {
  const hex = data.toString('hex')
  const kind = hex.slice(2, 4)
  const isNegativeAt4 = data.length >= 8 && data.readInt32BE(4) < 0
  const hasNumber = ['b1', 'b3', 'f0'].includes(kind) || (kind === 'b2' && isNegativeAt4)
  const payload = data.subarray(hasNumber ? 12 : 8)
  const sizeAt = hasNumber ? 8 : 4
  const fits = data.length >= sizeAt + 4 && data.readUInt32BE(sizeAt) === payload.length
  return { kind, hex, number: hasNumber ? data.readInt32BE(4) : undefined, payload: fits ? payload : Buffer.alloc(0) }
}

/** The P2 simulator, which each test starts as it needs it. */
export class P2SimulatorLab {
  simulator: SocketSimulator | undefined

  readonly start = async (options: P2SimulatorOptions = {}): Promise<SocketSimulator> => {
    this.simulator = await startP2Simulator({ apiKey: P2_KEY, ...options })
    return this.simulator
  }

  async close(): Promise<void> {
    await this.simulator?.close()
    this.simulator = undefined
  }
}

/** The last frame as an error: its code and its text. */
export function errorOf({ frames }: P2Conversation): [number | undefined, string] {
  const last = frames.at(-1)
  expect(last?.kind).toBe('f0')
  return [last?.number, last?.payload.toString('utf8') ?? '']
}

export interface P3Answer {
  data: { audio: string; status: number; ced: string; subtitle_file?: string } | null
  extra_info?: Record<string, number | string>
  trace_id: string
  base_resp: { status_code: number; status_msg: string }
}

/** Differences from a valid request with the key. */
export interface P3PostOptions {
  readonly key?: string
  readonly query?: string
  readonly type?: string
}

export const KEY = 'p3-test-key'
export const good = {
  model: 'speech-2.5-hd-preview',
  text: 'The kettle is on.',
  voice_setting: { voice_id: 'English_expressive_narrator' },
}

/** The P3 simulator, which each test starts as it needs it, and a plain client that knows its key. */
export class P3SimulatorLab {
  simulator: Simulator | undefined

  readonly start = async (options: P3SimulatorOptions = {}): Promise<Simulator> => {
    this.simulator = await startP3Simulator({ apiKey: KEY, ...options })
    return this.simulator
  }

  async close(): Promise<void> {
    await this.simulator?.close()
    this.simulator = undefined
  }

  readonly post = (body: object | string, options: P3PostOptions = {}): Promise<Response> =>
    fetch(`${this.simulator?.url ?? ''}/v1/t2a_v2${options.query ?? ''}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${options.key ?? KEY}`, 'content-type': options.type ?? 'application/json' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })

  /** The answer, which must come with a 200, as every answer to a request of the right form does. */
  readonly ask = async (body: object | string, options: P3PostOptions = {}): Promise<P3Answer> => {
    const response = await this.post(body, options)
    expect(response.status).toBe(200)
    return (await response.json()) as P3Answer
  }

  /** Starts a simulator and has it speak, in hex; it must succeed. */
  readonly speak = async (
    change: object,
    options: P3SimulatorOptions = {},
  ): Promise<{ answer: P3Answer; audio: Buffer }> => {
    await this.start(options)
    const answer = await this.ask({ ...good, ...change })
    expect(answer.base_resp).toEqual({ status_code: 0, status_msg: 'success' })
    return { answer, audio: Buffer.from(answer.data?.audio ?? '', 'hex') }
  }
}
