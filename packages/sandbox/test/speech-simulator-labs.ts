import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
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

/** A request frame with the plain header, unless told otherwise. */
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
