import type { IncomingMessage } from 'node:http'
import { createParamDecorator, Injectable, mixin, type PipeTransform, type Type } from '@nestjs/common'
import type { Request, Response } from 'express'
import { ConfigStore } from '../config/config-store.js'
import { DtoCheck } from '../core/dto.js'
import { GatewayError } from '../core/errors.js'
import { JsonBody } from '../core/json-body.js'
import { contextOf, type RequestContext } from '../core/request-context.js'
import { assertReadable, memoryFull, readBody } from './read-body.js'

/** A request and the response that answers it. */
export interface Exchange {
  readonly request: Request
  readonly response: Response
}

/** Request and response for pipes that read bodies; pipes run after guards, so no body is read for an unknown key. */
export const HttpExchange = createParamDecorator((_data, context): Exchange => {
  const http = context.switchToHttp()
  return { request: http.getRequest<Request>(), response: http.getResponse<Response>() }
})

/** JSON requests are small: a body that takes longer is a stalled or hostile client. */
export const JSON_BODY_TIMEOUT_MS = 30_000

/** Bodies with images come over slow lines; the server's own limit for a whole request is the same. */
const IMAGE_BODY_TIMEOUT_MS = 120_000

/** A JSON request as a controller receives it: what was sent, and by whom. One parameter, as Nest charges for each. */
export interface JsonBodyRequest<Dto extends object> {
  readonly body: JsonBody<Dto>
  readonly call: RequestContext
}

/** What the bodies of an endpoint have that others do not. */
interface JsonBodyRules<Dto> {
  /** What is read after the check, of fields of which only the bytes are to stay in memory; absent = all. */
  readonly reduced?: (fields: Dto) => Dto
  /** Values at all levels; absent = the gateway's limit (`MAXIMUM_JSON_VALUES`). */
  readonly maximumValues?: number | undefined
}

/** An endpoint whose body is JSON. */
type JsonEndpoint = { readonly bodyLimit: 'jsonBodyBytes' | 'imageBodyBytes' }

const BODY_TIMEOUTS_MS = { jsonBodyBytes: JSON_BODY_TIMEOUT_MS, imageBodyBytes: IMAGE_BODY_TIMEOUT_MS } as const

function jsonBodyPipe<Dto extends object>(
  bodyLimit: JsonEndpoint['bodyLimit'],
  dto: Type<Dto>,
  { reduced, maximumValues }: JsonBodyRules<Dto>,
): Type<PipeTransform<Exchange, Promise<JsonBodyRequest<Dto>>>> {
  const timeoutMs = BODY_TIMEOUTS_MS[bodyLimit]

  @Injectable()
  class JsonBodyPipe implements PipeTransform<Exchange, Promise<JsonBodyRequest<Dto>>> {
    private readonly check = new DtoCheck(dto)

    constructor(private readonly store: ConfigStore) {}

    async transform({ request, response }: Exchange): Promise<JsonBodyRequest<Dto>> {
      const maximumBytes = this.store.current.limits[bodyLimit]
      assertJson(request)
      assertReadable(request, maximumBytes)
      const call = contextOf(request)
      const read = readBody(request, response, { maximumBytes, timeoutMs })
      let parsedBytes = 0
      const beforeParsing = (values: number): void => {
        if (values <= FREE_VALUES) return
        parsedBytes = values * VALUE_BYTES
        if (call.memory?.take(parsedBytes) === false) throw memoryFull()
      }
      const bytes = Buffer.isBuffer(read) ? read : await received(read, call)
      const body = JsonBody.parse(bytes, { maximumValues, beforeParsing })
      const fields = this.check.assert(body.fields)
      if (reduced === undefined) return { body: body.as(fields), call }
      call.memory?.giveBack(parsedBytes)
      return { body: body.as(reduced(fields)), call }
    }
  }
  return mixin(JsonBodyPipe)
}

/** Nearly all bodies have fewer, and take little more memory parsed than their bytes do. */
const FREE_VALUES = 1_024
/** What the parser takes for an empty list, or for a member with its name. */
const VALUE_BYTES = 64

/** A body that is not there yet, and how long it took. */
async function received(arriving: Promise<Buffer>, call: RequestContext): Promise<Buffer> {
  const startedAtMs = performance.now()
  const bytes = await arriving
  call.log.receiveMs = performance.now() - startedAtMs
  return bytes
}

/** A controller's JSON body: read within the endpoint's limit, checked against the DTO, kept as the caller's bytes. */
export function JsonRequest<Dto extends object>(
  { bodyLimit }: JsonEndpoint,
  dto: Type<Dto>,
  rules: JsonBodyRules<Dto> = {},
): ParameterDecorator {
  return HttpExchange(jsonBodyPipe(bodyLimit, dto, rules))
}

/** The call itself: who asks, since when, and whether they are still there. */
export const CurrentRequest = createParamDecorator((_data, context) =>
  contextOf(context.switchToHttp().getRequest<Request>()),
)

/** As nearly every client spells it. */
const PLAIN_JSON = 'application/json'
const JSON_TYPE = /^application\/(?:json|[a-z0-9.+-]+\+json) *(?:;|$)/i

/** Throws `unsupported_media_type` for whatever does not say that it is JSON in UTF-8. */
export function assertJson(request: IncomingMessage): void {
  const contentType = request.headers['content-type'] ?? ''
  if (contentType === PLAIN_JSON) return
  const charset = /charset *= *"?([^";\s]+)/i.exec(contentType)?.[1]?.toLowerCase()
  if (JSON_TYPE.test(contentType) && (charset === undefined || charset === 'utf-8' || charset === 'utf8')) return
  throw new GatewayError('unsupported_media_type', 'The Content-Type of this request must be application/json.')
}
