import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { ErrorKind } from '../core/errors.js'
import { GatewayError } from '../core/gateway-error.js'
import { newRequestId } from '../core/request-id.js'
import { renderError } from '../dialects/error-format.js'
import { originForm, pathOf } from './request-target.js'

const LINGER_MS = 1_000
const REQUEST_LINE_BYTES = 2_048

const FAILURES: Readonly<Record<string, readonly [ErrorKind, string]>> = {
  HPE_HEADER_OVERFLOW: ['header_fields_too_large', 'The request headers are too large.'],
  ERR_HTTP_REQUEST_TIMEOUT: ['request_timeout', 'The request did not arrive in time.'],
}

/**
 * Answers what never became a request (broken HTTP, oversized headers, a client too slow) as JSON, then closes.
 * `current` is the connection's last response: one that has begun must not get a second head into its body.
 */
export function answerClientError(
  error: NodeJS.ErrnoException,
  socket: Duplex,
  current: ServerResponse | undefined,
): void {
  if (!socket.writable || error.code === 'ECONNRESET' || (current !== undefined && hasBegun(current))) {
    socket.destroy()
    return
  }
  const [kind, message] = FAILURES[error.code ?? ''] ?? ['invalid_request', 'The request is not valid HTTP.']
  const { status, headers, body } = renderError(
    new GatewayError(kind, message),
    failedPath(error, current),
    newRequestId(),
  )
  const lines = Object.entries({ ...headers, 'content-length': String(Buffer.byteLength(body)), connection: 'close' })
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  // A client that never ends its side must not keep the connection.
  setTimeout(() => socket.destroy(), LINGER_MS).unref()
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${head}\r\n${body}`)
}

/**
 * The path of the request that broke off in its body, otherwise as far as the request line was understood; unknown paths
 * have a dialect of their own.
 */
function failedPath(error: NodeJS.ErrnoException, current: ServerResponse | undefined): string {
  if (current?.req.complete === false) return pathOf(originForm(current.req.url ?? ''))
  const packet = 'rawPacket' in error && Buffer.isBuffer(error.rawPacket) ? error.rawPacket : Buffer.alloc(0)
  return /^[A-Z]+ ([^ ?]+)[ ?]/.exec(packet.toString('latin1', 0, REQUEST_LINE_BYTES))?.[1] ?? ''
}

/** A finished response has begun as well while its request still arrives: the failure is that request's. */
const hasBegun = (response: ServerResponse): boolean =>
  response.headersSent && !(response.writableFinished && response.req.complete)
