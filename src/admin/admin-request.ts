import { applyDecorators, Injectable, mixin, type PipeTransform, type Type } from '@nestjs/common'
import { ApiBearerAuth, ApiBody, ApiProperty, ApiTags } from '@nestjs/swagger'
import { getMetadataStorage } from 'class-validator'
import { DtoCheck, type Query } from '../core/dto.js'
import { GatewayError, quoted } from '../core/errors.js'
import { JsonBody } from '../core/json-body.js'
import { contextOf } from '../core/request-context.js'
import { OPENAI_ERROR, responses } from '../dialects/error-docs.js'
import { assertJson, type Exchange, HttpExchange, JSON_BODY_TIMEOUT_MS } from '../server/json-request.js'
import { assertReadable, readBody } from '../server/read-body.js'

const CASES: Readonly<Record<number, string>> = {
  400: 'The request is not valid; param names the field',
  401: 'No admin key, or a wrong one',
  404: 'There is no such thing, or no auth.adminKey in the configuration',
  409: 'The id is taken, or the key is revoked',
  413: 'The body is larger than 65,536 bytes',
  415: 'The body is of the wrong media type',
  422: 'The configuration file has faults; the old configuration stays in force',
  429: 'Too many wrong admin keys; Retry-After says when to come back',
  503: 'The store cannot be reached; nothing was done',
}

/** Decorates routes that require the admin key. */
export const ApiAdmin = (): ClassDecorator => applyDecorators(ApiTags('admin'), ApiBearerAuth())

/** Error responses of admin routes in the OpenAPI document. */
export const ApiAdminErrors = (statuses = [400, 401, 404, 409, 413, 415, 429, 503]): MethodDecorator =>
  responses(OPENAI_ERROR, statuses, CASES)

/** Limit of an admin request's body. */
const MAXIMUM_BYTES = 65_536

/** Unknown names are not repeated in messages if longer, or with other characters. */
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
      contextOf(request).log.receiveMs = performance.now() - startedAtMs
      const { fields } = JsonBody.parse(bytes)
      assertKnown(Object.keys(fields), this.names)
      return this.check.assert(fields)
    }
  }
  return mixin(AdminBodyPipe)
}

/** The admin API is the gateway's own: unknown names are refused. */
function assertKnown(names: readonly string[], known: ReadonlySet<string>): void {
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

/** Reads the query of an admin request. Throws `invalid_request` for an unknown or repeated name,
 * and for control characters. */
export function readQuery<Name extends string>(query: Query, names: readonly Name[]): Partial<Record<Name, string>> {
  assertKnown(Object.keys(query), new Set<string>(names))
  const read: Partial<Record<Name, string>> = {}
  for (const name of names) {
    const value = query[name]
    if (value === undefined) continue
    if (typeof value !== 'string') throw invalid(name, `The parameter ${quoted(name)} stands more than once.`)
    // PostgreSQL text cannot hold a NUL, and no valid value has control characters.
    if (/\p{Cc}/u.test(value)) throw invalid(name, `The parameter ${quoted(name)} holds a control character.`)
    read[name] = value
  }
  return read
}

/** Reads a whole number of a range from a query; undefined when absent. Throws `invalid_request`. */
export function wholeNumber(
  name: string,
  text: string | undefined,
  [minimum, maximum]: readonly [number, number],
): number | undefined {
  if (text === undefined) return undefined
  const number = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (number >= minimum && number <= maximum) return number
  throw invalid(name, `Invalid '${name}': expected a whole number from ${minimum} to ${maximum}.`)
}

export const invalid = (param: string, message: string): GatewayError =>
  new GatewayError('invalid_request', message, { param, code: 'invalid_value' })

/** One page of a list in the admin API. */
interface Page<Item> {
  readonly object: 'list'
  readonly data: readonly Item[]
  readonly has_more: boolean
}

/** Makes the DTO class of such a page; `next` describes how to request the following one. */
export function pageOf<Item>(
  item: Type<Item>,
  next: string,
): new (data: readonly Item[], hasMore: boolean) => Page<Item> {
  class PageDto implements Page<Item> {
    @ApiProperty({ enum: ['list'] })
    readonly object = 'list'

    @ApiProperty({ type: [item] })
    readonly data: readonly Item[]

    @ApiProperty({ description: next })
    readonly has_more: boolean

    constructor(data: readonly Item[], hasMore: boolean) {
      this.data = data
      this.has_more = hasMore
    }
  }
  return PageDto
}
