import { createParamDecorator, Injectable, mixin, type PipeTransform, type Type } from '@nestjs/common'
import { ApiBody } from '@nestjs/swagger'
import type { Request } from 'express'
import { ConfigStore } from '../../config/config-store.js'
import { GatewayError } from '../errors/gateway-error.js'
import { DtoCheck } from '../validation/dto-check.js'
import { type Call, callOf } from './call.js'
import { type Exchange, HttpExchange } from './exchange.decorator.js'
import { JsonBody } from './json-body.js'
import { assertReadable, continueIfAsked, readBody } from './request-body.js'

/** JSON requests are small: a body that takes longer is a stalled or hostile client. */
const JSON_BODY_TIMEOUT_MS = 30_000

/** A JSON request as a controller receives it: what was sent, and by whom. One parameter, as Nest charges for each. */
export interface JsonCall<Dto extends object> {
  readonly body: JsonBody<Dto>
  readonly call: Call
}

function jsonBodyPipe<Dto extends object>(dto: Type<Dto>): Type<PipeTransform<Exchange, Promise<JsonCall<Dto>>>> {
  @Injectable()
  class JsonBodyPipe implements PipeTransform<Exchange, Promise<JsonCall<Dto>>> {
    private readonly check = new DtoCheck(dto)

    constructor(private readonly store: ConfigStore) {}

    async transform({ request, response }: Exchange): Promise<JsonCall<Dto>> {
      const maximumBytes = this.store.current.limits.jsonBodyBytes
      assertJson(request)
      assertReadable(request, maximumBytes)
      continueIfAsked(request, response)
      const call = callOf(request)
      const startedAtMs = performance.now()
      const bytes = await readBody(request, { maximumBytes, timeoutMs: JSON_BODY_TIMEOUT_MS })
      call.log.receiveMs = performance.now() - startedAtMs
      const body = JsonBody.parse(bytes)
      const fields = this.check.accepts(body.fields) ? (body.fields as Dto) : await this.check.assert(body.fields)
      return { body: body.as(fields), call }
    }
  }
  return mixin(JsonBodyPipe)
}

/** A controller's JSON body: read within the limits, checked against the DTO, kept as the caller's bytes. */
export function JsonRequest(dto: Type<object>): ParameterDecorator {
  const parameter = HttpExchange(jsonBodyPipe(dto))
  return (target, key, index) => {
    parameter(target, key, index)
    if (key === undefined) return
    const descriptor = Object.getOwnPropertyDescriptor(target, key)
    if (descriptor !== undefined) ApiBody({ type: dto })(target, key, descriptor)
  }
}

/** The call itself: who asks, since when, and whether they are still there. */
export const CurrentCall = createParamDecorator((_data, context) =>
  callOf(context.switchToHttp().getRequest<Request>()),
)

const JSON_TYPE = /^application\/(?:json|[a-z0-9.+-]+\+json) *(?:;|$)/i

function assertJson(request: Request): void {
  const contentType = request.headers['content-type'] ?? ''
  const charset = /charset *= *"?([^";\s]+)/i.exec(contentType)?.[1]?.toLowerCase()
  if (JSON_TYPE.test(contentType) && (charset === undefined || charset === 'utf-8' || charset === 'utf8')) return
  throw new GatewayError('unsupported_media_type', 'The Content-Type of this request must be application/json.')
}
