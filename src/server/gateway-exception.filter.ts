import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException } from '@nestjs/common'
import type { Request, Response } from 'express'
import type { ErrorKind } from '../core/errors.js'
import { GatewayError } from '../core/gateway-error.js'
import { callOf } from '../core/request-context.js'
import { methodsOf } from '../observability/known-routes.js'
import { answerWithError } from './error-answer.js'

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
    answerWithError(gatewayErrorOf(exception, request), callOf(request), request, response)
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
