import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException } from '@nestjs/common'
import type { Request, Response } from 'express'
import { callOf } from '../http/call.js'
import { methodsOf } from '../http/known-routes.js'
import { renderError } from './envelope-choice.js'
import type { ErrorKind } from './error-kinds.js'
import { GatewayError } from './gateway-error.js'

/** A client that still sends a body after it was refused is listened to this long, so that it can read the refusal. */
const LINGER_MS = 10_000

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
  catch(exception: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp()
    const request = http.getRequest<Request>()
    const response = http.getResponse<Response>()
    const call = callOf(request)
    const error = gatewayErrorOf(exception, request)
    call.log.failure = error
    if (call.departure.left) return
    if (response.headersSent) {
      response.destroy()
      return
    }
    const { status, headers, body } = renderError(error, call.path, call.requestId)
    response.writeHead(status, { ...headers, 'content-length': String(Buffer.byteLength(body)) })
    if (request.complete) response.end(body)
    else answerWhileListening(body, request, response)
  }
}

function gatewayErrorOf(exception: unknown, request: Request): GatewayError {
  if (exception instanceof GatewayError) return exception
  if (!(exception instanceof HttpException)) {
    return new GatewayError('internal', 'The gateway failed to answer this request.', { cause: exception })
  }
  const kind = HTTP_KINDS[exception.getStatus()]
  if (kind === 'not_found') return unknownRoute(request)
  if (kind === undefined)
    return new GatewayError('internal', 'The gateway failed to answer this request.', { cause: exception })
  return new GatewayError(kind, 'The request is not valid.', { cause: exception })
}

function unknownRoute(request: Request): GatewayError {
  const { method, path } = callOf(request)
  const allow = methodsOf(request.app, path)
  if (allow.length === 0) return new GatewayError('not_found', 'There is nothing at this path.')
  return new GatewayError('method_not_allowed', `The method ${method} is not allowed at this path.`, { allow })
}

/**
 * Answers a client that may still be sending. The answer is whole by its length, but it is ended only after the request:
 * Node closes a connection that is not kept alive as soon as its response ends, and the reset would overtake the answer.
 * A body without end must not keep the connection for ever.
 */
function answerWhileListening(body: string, request: Request, response: Response): void {
  response.write(body)
  const end = (): void => {
    clearTimeout(timer)
    response.end()
  }
  const timer = setTimeout(() => {
    end()
    request.destroy()
  }, LINGER_MS)
  // Shutdown must not wait for it.
  timer.unref()
  request.once('end', end).once('close', end).resume()
}
