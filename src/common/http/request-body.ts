import type { IncomingMessage, ServerResponse } from 'node:http'
import { GatewayError } from '../errors/gateway-error.js'
import { callerLeft } from './call.js'

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

/** Tells a client that sent `Expect: 100-continue` to go on; the server leaves that decision to whoever reads. */
export function continueIfAsked(request: IncomingMessage, response: ServerResponse): void {
  if (request.headers.expect?.toLowerCase() === '100-continue') response.writeContinue()
}

/**
 * Reads a body into memory, at most `maximumBytes`.
 * Throws `payload_too_large`, `request_timeout` or `caller_left`; what is still coming is discarded by the server.
 */
export function readBody(request: IncomingMessage, limits: BodyLimits): Promise<Buffer> | Buffer {
  // A small body has arrived together with its headers; it needs no listeners and no deadline. (`request.complete` is
  // not yet true at this point: Node runs our code between the last byte and the end of the message.)
  const isHere = request.readableLength > 0 && request.headers['content-length'] === String(request.readableLength)
  const body = isHere ? (request.read() as Buffer | null) : null
  if (body === null) return readArrivingBody(request, limits)
  if (body.length > limits.maximumBytes) throw bodyTooLarge(limits.maximumBytes)
  return body
}

function readArrivingBody(request: IncomingMessage, limits: BodyLimits): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let received = 0
    const settle = (outcome: () => void): void => {
      clearTimeout(timer)
      request.removeListener('data', onData).removeListener('end', onEnd).removeListener('close', onClose)
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
      else chunks.push(chunk)
    }
    const onEnd = (): void => {
      settle(() => {
        resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, received))
      })
    }
    const onClose = (): void => {
      fail(callerLeft())
    }
    const timer = setTimeout(() => {
      fail(new GatewayError('request_timeout', `The request body did not arrive within ${limits.timeoutMs} ms.`))
    }, limits.timeoutMs)
    request.on('data', onData).on('end', onEnd).on('close', onClose)
  })
}
