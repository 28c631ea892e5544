import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException } from '@nestjs/common'
import type { Request, Response } from 'express'
import { type Dialect, DIALECT_HEADERS } from '../core/endpoint.js'
import { type ErrorKind, GatewayError, UnknownPath } from '../core/errors.js'
import { type RequestContext, contextOf, newRequestId } from '../core/request-context.js'
import { renderError } from '../dialects/error-format.js'
import { methodsOf } from '../observability/routes.js'
import { originForm, pathOf } from './request-target.js'
import { UnknownPaths } from './unknown-path.js'

/** A client that still sends a body after it was refused is listened to this long, so that it can read the refusal. */
const REFUSED_UPLOAD_LINGER_MS = 10_000

/** Answers a call with an error in the dialect of its path, unless its response has begun or its client has left. */
export function sendError(
  error: GatewayError,
  call: RequestContext,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  call.log.failure = error
  if (call.disconnect.aborted) return
  if (response.headersSent) {
    response.destroy()
    return
  }
  const { status, headers, body } = renderError(error, call.dialect, call.requestId)
  response.writeHead(status, { ...headers, 'content-length': String(Buffer.byteLength(body)) })
  endResponse(body, request, response)
}

/** Writes the body of an answer whose head is written, whether or not the request has been received to its end. */
export function endResponse(body: string, request: IncomingMessage, response: ServerResponse): void {
  if (request.complete) response.end(body)
  else respondWhileReading(body, request, response)
}

/**
 * Answers a client that may still be sending. The answer is whole by its length, but it is ended only after the request:
 * Node closes a connection that is not kept alive as soon as its response ends, and the reset would overtake the answer.
 * A body without end must not keep the connection for ever.
 */
function respondWhileReading(body: string, request: IncomingMessage, response: ServerResponse): void {
  response.write(body)
  const end = (): void => {
    clearTimeout(timer)
    response.end()
  }
  const timer = setTimeout(() => {
    end()
    request.destroy()
  }, REFUSED_UPLOAD_LINGER_MS)
  // Shutdown must not wait for it.
  timer.unref()
  request.once('end', end).once('close', end).resume()
}

/** What Nest and Express throw by themselves, in our words. */
const HTTP_KINDS: Readonly<Record<number, ErrorKind>> = {
  400: 'invalid_request',
  404: 'not_found',
  408: 'request_timeout',
  413: 'payload_too_large',
  415: 'unsupported_media_type',
}

/** The last stop of every failure: one error, rendered in the dialect of the request's path. */
@Catch()
export class GatewayExceptionFilter implements ExceptionFilter {
  constructor(private readonly unknownPaths = new UnknownPaths([])) {}

  catch(exception: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp()
    const request = http.getRequest<Request>()
    const response = http.getResponse<Response>()
    sendError(gatewayErrorOf(exception, request, this.unknownPaths), contextOf(request), request, response)
  }
}

/** What is neither the caller's fault nor an upstream's; the cause is for the log. */
export const internalFault = (cause: unknown): GatewayError =>
  new GatewayError('internal', 'The gateway failed to answer this request.', { cause })

function gatewayErrorOf(exception: unknown, request: Request, unknownPaths: UnknownPaths): GatewayError {
  if (exception instanceof UnknownPath) return nothingAt(request, unknownPaths)
  if (exception instanceof GatewayError) return exception
  if (!(exception instanceof HttpException)) return internalFault(exception)
  const kind = HTTP_KINDS[exception.getStatus()]
  if (kind === 'not_found') return unknownRoute(request, unknownPaths)
  if (kind === undefined) return internalFault(exception)
  return new GatewayError(kind, 'The request is not valid.', { cause: exception })
}

/** The message never shows a path that holds a secret. */
const nothingAt = (request: Request, unknownPaths: UnknownPaths): GatewayError => {
  const { path, loggedPath } = contextOf(request)
  // Caches keep a 404 by themselves, and its form is that of the client's dialect.
  return new GatewayError('not_found', unknownPaths.describe(path, loggedPath), { headers: { vary: DIALECT_HEADERS } })
}

function unknownRoute(request: Request, unknownPaths: UnknownPaths): GatewayError {
  const { method, path } = contextOf(request)
  const allow = methodsOf(request.app, path)
  if (allow.length === 0) return nothingAt(request, unknownPaths)
  return new GatewayError('method_not_allowed', `The method ${method} is not allowed at this path.`, { allow })
}

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
export function sendClientError(
  error: NodeJS.ErrnoException,
  socket: Duplex,
  current: ServerResponse | undefined,
  dialectOf: (path: string) => Dialect,
): void {
  if (!socket.writable || error.code === 'ECONNRESET' || (current !== undefined && hasBegun(current))) {
    socket.destroy()
    return
  }
  const [kind, message] = FAILURES[error.code ?? ''] ?? ['invalid_request', 'The request is not valid HTTP.']
  const { status, headers, body } = renderError(
    new GatewayError(kind, message),
    dialectOf(failedPath(error, current)),
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

/** An ended response has begun as well while its request still arrives: the failure is that request's. */
const hasBegun = (response: ServerResponse): boolean =>
  response.headersSent && !(response.writableEnded && response.req.complete)
