import { Injectable, mixin, type PipeTransform, type Type } from '@nestjs/common'
import { ApiBody } from '@nestjs/swagger'
import { getMetadataStorage } from 'class-validator'
import { DtoCheck } from '../core/dto-check.js'
import { GatewayError } from '../core/gateway-error.js'
import { JsonBody } from '../core/json-body.js'
import { quoted } from '../core/message-text.js'
import { callOf } from '../core/request-context.js'
import { type Exchange, HttpExchange } from '../server/exchange.decorator.js'
import { assertJson, JSON_BODY_TIMEOUT_MS } from '../server/json-request.js'
import { assertReadable, readBody } from '../server/read-body.js'

/** Whatever an operator has to say fits in. */
const MAXIMUM_BYTES = 65_536

/** A name of any length and content is not repeated as a path. */
const NAMEABLE = /^[A-Za-z0-9_-]{1,64}$/

function adminBodyPipe<Dto extends object>(dto: Type<Dto>): Type<PipeTransform<Exchange, Promise<Dto>>> {
  @Injectable()
  class AdminBodyPipe implements PipeTransform<Exchange, Promise<Dto>> {
    private readonly check = new DtoCheck(dto)
    private readonly names = new Set(
      getMetadataStorage()
        .getTargetValidationMetadatas(dto, '', false, false)
        .map(({ propertyName }) => propertyName),
    )

    async transform({ request, response }: Exchange): Promise<Dto> {
      assertJson(request)
      assertReadable(request, MAXIMUM_BYTES)
      const startedAtMs = performance.now()
      const bytes = await readBody(request, response, { maximumBytes: MAXIMUM_BYTES, timeoutMs: JSON_BODY_TIMEOUT_MS })
      callOf(request).log.receiveMs = performance.now() - startedAtMs
      const { fields } = JsonBody.parse(bytes)
      assertKnown(Object.keys(fields), this.names)
      return this.check.assert(fields)
    }
  }
  return mixin(AdminBodyPipe)
}

/** This interface is the gateway's own: a name it does not know is a mistake, and nobody else's business. */
export function assertKnown(names: readonly string[], known: ReadonlySet<string>): void {
  const unknown = names.find((name) => !known.has(name))
  if (unknown === undefined) return
  const supported = [...known].join(', ')
  throw new GatewayError(
    'invalid_request',
    `Unknown parameter: ${quoted(unknown)}. ${supported === '' ? 'None is supported here.' : `Supported are: ${supported}.`}`,
    { code: 'unknown_parameter', ...(NAMEABLE.test(unknown) ? { param: unknown } : {}) },
  )
}

/** An operator's JSON body: small, checked against the DTO, without any field that the DTO does not have. */
export function AdminBody(dto: Type<object>): ParameterDecorator {
  const parameter = HttpExchange(adminBodyPipe(dto))
  return (target, key, index) => {
    parameter(target, key, index)
    const descriptor = key === undefined ? undefined : Object.getOwnPropertyDescriptor(target, key)
    if (key !== undefined && descriptor !== undefined) ApiBody({ type: dto })(target, key, descriptor)
  }
}
