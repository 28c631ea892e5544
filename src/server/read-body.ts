import type { IncomingMessage, ServerResponse } from 'node:http'
import { GatewayError } from '../core/errors.js'
import { freeBytes } from '../core/free-bytes.js'
import type { ArrivingBody } from '../core/quota.js'
import { clientDisconnected, findContext, countReceived } from '../core/request-context.js'

export interface BodyLimits {
  readonly maximumBytes: number
  /** The whole body must have arrived within this time. */
  readonly timeoutMs: number
}

/**
 * Refuses from the headers alone what need not be read: a declared length over the limit (413), a compressed body (415).
 * Called before the body is touched, so that a client which waits for `100 Continue` never sends it.
 */
export function assertReadable(request: IncomingMessage, maximumBytes: number): void {
  const encoding = request.headers['content-encoding']
  if (encoding !== undefined && encoding !== 'identity') {
    throw new GatewayError(
      'unsupported_media_type',
      'Compressed request bodies are not accepted: send no Content-Encoding.',
    )
  }
  if (Number(request.headers['content-length'] ?? 0) > maximumBytes) throw bodyTooLarge(maximumBytes)
}

export const bodyTooLarge = (maximumBytes: number): GatewayError =>
  new GatewayError('payload_too_large', `The request body is larger than ${maximumBytes} bytes.`)

/** A body on its way now is gone in seconds: the time to receive it and to hand it to an upstream. */
const ROOM_AFTER_SECONDS = 5

/** The process holds as much for its callers as it may. */
export const memoryFull = (): GatewayError =>
  new GatewayError('overloaded', 'The gateway holds as many bytes of requests and answers as it may at the moment.', {
    retryAfterSeconds: ROOM_AFTER_SECONDS,
  })

/**
 * Room for a body that is held in memory, of whatever its headers announce and at most `maximumBytes` of it; undefined
 * where bytes are not counted. Called before the body is asked for. Throws `overloaded` when there is no room.
 */
export function reserveMemory(request: IncomingMessage, maximumBytes: number): ArrivingBody | undefined {
  const memory = findContext(request)?.memory
  if (memory === undefined) return undefined
  const body = memory.reserve(declaredBytes(request), maximumBytes)
  if (body === undefined) throw memoryFull()
  return body
}

/** Ends a body that lost its place. */
export function onEviction(room: ArrivingBody | undefined, fail: (error: GatewayError) => void): void {
  if (room === undefined) return
  room.onEvicted = () => {
    fail(new GatewayError('request_timeout', 'The request body made no progress while others needed its room.'))
  }
}

function declaredBytes({ headers }: IncomingMessage): number | undefined {
  const contentLength = headers['content-length']
  if (contentLength !== undefined) return Number(contentLength)
  return headers['transfer-encoding'] === undefined ? 0 : undefined
}

/** Tells a client that sent `Expect: 100-continue` to go on; the server leaves that decision to the body reader. */
export function continueIfAsked(request: IncomingMessage, response: ServerResponse): void {
  if (request.headers.expect?.toLowerCase() === '100-continue') response.writeContinue()
}

/**
 * Reads a body into memory, at most `maximumBytes`; a client that waits gets `100 Continue`. Throws `payload_too_large`,
 * `request_timeout`, `caller_left`, or `overloaded` when there is no room; what is still coming is discarded by the server.
 */
export function readBody(
  request: IncomingMessage,
  response: ServerResponse,
  limits: BodyLimits,
): Promise<Buffer> | Buffer {
  // A small body has arrived together with its headers; it needs no listeners and no deadline. (`request.complete` is
  // not yet true at this point: Node runs our code between the last byte and the end of the message.)
  const isHere = request.readableLength > 0 && request.headers['content-length'] === String(request.readableLength)
  const body = isHere ? (request.read() as Buffer | null) : null
  if (body === null) return readArrivingBody(request, response, limits)
  if (body.length > limits.maximumBytes) throw bodyTooLarge(limits.maximumBytes)
  if (findContext(request)?.memory?.take(body.length) === false) throw memoryFull()
  countReceived(request, body.length)
  return body
}

/** Room for what is still to come of an announced body: three copies put together what is larger than 4 MB. */
const GROWTH = 4
const LEAST_ROOM_BYTES = 65_536

/** The bytes of a body, put together as they come: each is in memory once, but for the piece that is being copied. */
class BodyBytes {
  private first: Buffer | undefined
  private bytes: Buffer | undefined
  private length = 0

  /** `announced`: 0 for a body in chunks. */
  constructor(private readonly announced: number) {}

  add(chunk: Buffer): void {
    const length = this.length + chunk.length
    if (this.length === 0) this.first = chunk
    else {
      const bytes = this.roomFor(length)
      chunk.copy(bytes, this.length)
      freeBytes(chunk)
    }
    this.length = length
  }

  whole(): Buffer {
    const { first, bytes, length } = this
    if (bytes === undefined || bytes.length === length) return first ?? bytes ?? Buffer.alloc(0)
    const exact = Buffer.from(bytes.subarray(0, length))
    freeBytes(bytes)
    return exact
  }

  /** Never much more than has come: announcing costs nothing, and must not cost the gateway more. */
  private roomFor(length: number): Buffer {
    const { first, bytes } = this
    if (bytes !== undefined && length <= bytes.length) return bytes
    const room = Math.max(GROWTH * length, LEAST_ROOM_BYTES)
    const larger = Buffer.allocUnsafeSlow(length <= this.announced ? Math.min(this.announced, room) : 2 * length)
    const before = first ?? bytes
    if (before !== undefined) {
      before.copy(larger, 0, 0, this.length)
      freeBytes(before)
    }
    this.first = undefined
    this.bytes = larger
    return larger
  }
}

function readArrivingBody(request: IncomingMessage, response: ServerResponse, limits: BodyLimits): Promise<Buffer> {
  const room = reserveMemory(request, limits.maximumBytes)
  continueIfAsked(request, response)
  return new Promise((resolve, reject) => {
    const body = new BodyBytes(Math.min(declaredBytes(request) ?? 0, limits.maximumBytes))
    let received = 0
    const settle = (outcome: () => void): void => {
      clearTimeout(timer)
      request.removeListener('data', onData).removeListener('end', onEnd).removeListener('close', onClose)
      countReceived(request, received)
      room?.end()
      outcome()
    }
    const fail = (error: GatewayError): void => {
      settle(() => {
        reject(error)
      })
    }
    const onData = (chunk: Buffer): void => {
      received += chunk.length
      if (received > limits.maximumBytes) fail(bodyTooLarge(limits.maximumBytes))
      else if (room?.arrived(chunk.length) === false) fail(memoryFull())
      else keep(chunk)
    }
    const keep = (chunk: Buffer): void => {
      try {
        body.add(chunk)
      } catch {
        // The system has no memory for it: no reason to end the process.
        fail(memoryFull())
      }
    }
    const onEnd = (): void => {
      settle(() => {
        resolve(body.whole())
      })
    }
    const onClose = (): void => {
      fail(clientDisconnected())
    }
    const timer = setTimeout(() => {
      fail(new GatewayError('request_timeout', `The request body did not arrive within ${limits.timeoutMs} ms.`))
    }, limits.timeoutMs)
    onEviction(room, fail)
    request.on('data', onData).on('end', onEnd).on('close', onClose)
  })
}
