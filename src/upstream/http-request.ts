import type { Socket } from 'node:net'
import { errors } from 'undici'
import { GatewayError } from '../core/errors.js'

/** In pieces, or read while it is sent: then each piece is sent before the next one is asked for. */
export type RequestBody = readonly Buffer[] | AsyncIterable<Buffer>

export const isInPieces = (body: RequestBody): body is readonly Buffer[] => Array.isArray(body)

/** How long a response may be silent, and how large it may be. */
export interface ResponseLimits {
  /** Until the response begins, and between its pieces. */
  readonly firstByteMs: number
  readonly idleMs: number
  /** Of its body. */
  readonly maximumBytes: number
}

/** A request as it goes over the wire. */
export interface OutgoingRequest extends ResponseLimits {
  /** From the request line to the empty line. */
  readonly head: string
  readonly body: RequestBody
  /** Of a body that is read while it is sent; undefined where it is sent in chunks. */
  readonly streamBytes: number | undefined
}

export interface RequestParts {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** With the query. */
  readonly path: string
  readonly host: string
  /** Names and values in turn, among them the length of a body that is read while it is sent. */
  readonly headers: readonly string[]
  readonly body: RequestBody
  /** False: the connection ends with the response. */
  readonly keepsAlive: boolean
}

const PATH = /^[\x21-\xff]+$/
/** What could end a value early, and begin another header. */
const NOT_IN_VALUE = /[^\t\x20-\x7e\x80-\xff]/
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
/** Providers send the same names over and over; a caller's own may be any, and only so many are remembered. */
const KNOWN_NAMES = 512
const knownNames = new Set<string>()

/** Framing and the connection are the client's own: a second opinion about either lets a server take one request for two. */
const RESERVED = new Set([
  'connection',
  'expect',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

function isName(name: string): boolean {
  if (knownNames.has(name)) return true
  if (!TOKEN.test(name) || RESERVED.has(name.toLowerCase())) return false
  if (knownNames.size < KNOWN_NAMES) knownNames.add(name)
  return true
}

/** Throws `upstream_failed` for what cannot stand in a head: nothing has been sent. */
export function outgoingRequest(parts: RequestParts, limits: ResponseLimits): OutgoingRequest {
  const { method, path, host, headers, body, keepsAlive } = parts
  if (!PATH.test(path)) throw unsendable('a path has characters that cannot stand in a request line')
  let head = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: ${keepsAlive ? 'keep-alive' : 'close'}\r\n`
  let length: string | undefined
  for (let index = 0; index < headers.length; index += 2) {
    const name = headers[index] ?? ''
    const value = headers[index + 1] ?? ''
    if (!isName(name) || NOT_IN_VALUE.test(value)) throw unsendable(`the header ${JSON.stringify(name)} cannot be sent`)
    if (name.length === CONTENT_LENGTH.length && name.toLowerCase() === CONTENT_LENGTH) length = value
    else head += `${name}: ${value}\r\n`
  }
  let streamBytes: number | undefined
  if (isInPieces(body)) {
    // Servers may refuse a POST without a length (RFC 9112, section 6.3).
    if (body.length > 0 || method === 'POST') head += `content-length: ${lengthOf(body)}\r\n`
  } else if (length === undefined) {
    head += 'transfer-encoding: chunked\r\n'
  } else {
    head += `content-length: ${length}\r\n`
    streamBytes = Number(length)
  }
  const { firstByteMs, idleMs, maximumBytes } = limits
  return { head: `${head}\r\n`, body, streamBytes, firstByteMs, idleMs, maximumBytes }
}

const CONTENT_LENGTH = 'content-length'

const lengthOf = (pieces: readonly Buffer[]): number => pieces.reduce((sum, { length }) => sum + length, 0)

/**
 * Sends a body while it is read, in chunks where its length (`bytes`) is not known, until it is over or not wanted any more: what
 * reads it is let go then. Rejects when it breaks, or is not as long as it said; more than that is never sent.
 */
export async function sendStream(
  socket: Socket,
  body: AsyncIterable<Buffer>,
  bytes: number | undefined,
  isWanted: () => boolean,
): Promise<void> {
  let sentBytes = 0
  for await (const piece of body) {
    if (!isWanted()) return
    sentBytes += piece.length
    if (bytes !== undefined && sentBytes > bytes) break
    if (piece.length > 0) await flush(socket, piece, bytes === undefined)
  }
  if (!isWanted()) return
  if (bytes === undefined) socket.write('0\r\n\r\n')
  else if (sentBytes !== bytes) throw new errors.RequestContentLengthMismatchError()
}

/** Resolves when the kernel has the piece, or the connection has ended. */
function flush(socket: Socket, piece: Buffer, isChunk: boolean): Promise<void> {
  return new Promise((resolve) => {
    socket.cork()
    if (isChunk) socket.write(`${piece.length.toString(16)}\r\n`)
    socket.write(piece, () => {
      resolve()
    })
    if (isChunk) socket.write('\r\n')
    socket.uncork()
  })
}

const unsendable = (reason: string): GatewayError =>
  new GatewayError('upstream_failed', 'The request cannot be sent to the upstream.', {
    cause: new TypeError(reason),
    attempt: { phase: 'unsent', channelError: true },
    retryable: true,
  })
