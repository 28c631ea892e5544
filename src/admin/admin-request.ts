import { Injectable, mixin, type PipeTransform, type Type } from '@nestjs/common'
import { getMetadataStorage } from 'class-validator'
import { DtoCheck, type Query, Shown } from '../core/dto.js'
import type { ParameterDocumentation, RouteDocumentation, RouteSpec } from '../core/endpoint.js'
import { GatewayError, quoted } from '../core/errors.js'
import { JsonBody } from '../core/json-body.js'
import { constant, listOf, patternOf, type Schema, TEXT } from '../core/json-schema.js'
import { contextOf } from '../core/request-context.js'
import { assertJson, type Exchange, HttpExchange, JSON_BODY_TIMEOUT_MS } from '../server/json-request.js'
import { assertReadable, readBody } from '../server/read-body.js'

/** Limit of an admin request's body. */
const MAXIMUM_BYTES = 65_536

const ADMIN_PATH = '/admin/v1'

/** What is served to operators, behind `AdminGuard`. Where there is no admin key, nothing is. */
export const adminRoute = (
  method: RouteSpec['method'],
  path: `/${string}`,
  documentation: Omit<RouteDocumentation, 'tag'>,
): RouteSpec => ({
  method,
  path: `${ADMIN_PATH}${path}`,
  dialect: 'openai',
  capability: 'none',
  keyHeaders: ['authorization'],
  rateLimit: 'exempt',
  bodyLimit: documentation.body === undefined ? 0 : MAXIMUM_BYTES,
  documentation: { ...documentation, tag: 'admin', errors: ['not_found', ...(documentation.errors ?? [])] },
})

/** The size of a page, in lists of the admin API. */
export const PAGE = { fallback: 100, range: [1, 1000] } as const

/** A whole number in a query, as `wholeNumber` reads it. */
export const numberParameter = (
  name: string,
  description: string,
  [minimum, maximum]: readonly [number, number],
  fallback?: number,
): ParameterDocumentation => ({
  in: 'query',
  name,
  description,
  schema: { type: 'integer', minimum, maximum, ...(fallback === undefined ? {} : { default: fallback }) },
})

export const LIMIT_PARAMETER = numberParameter('limit', 'How many on a page', PAGE.range, PAGE.fallback)

/** No value that is read holds a control character. */
export const PLAIN_TEXT = /^[^\p{Cc}]*$/u

/** A text in a query, as `readQuery` reads it. */
export const textParameter = (name: string, description: string): ParameterDocumentation => ({
  in: 'query',
  name,
  description,
  schema: { ...TEXT, pattern: patternOf(PLAIN_TEXT.source) },
})

export const pathParameter = (name: string, description: string): ParameterDocumentation => ({
  in: 'path',
  name,
  description,
  schema: { ...TEXT, minLength: 1 },
})

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
  return HttpExchange(adminBodyPipe(dto))
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
    if (!PLAIN_TEXT.test(value)) throw invalid(name, `The parameter ${quoted(name)} holds a control character.`)
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
export function pageOf<Item>(item: Schema, next: string): new (data: readonly Item[], hasMore: boolean) => Page<Item> {
  class PageDto implements Page<Item> {
    @Shown(constant('list'))
    readonly object = 'list'

    @Shown(listOf(item, 'The page'))
    readonly data: readonly Item[]

    @Shown({ type: 'boolean', description: next })
    readonly has_more: boolean

    constructor(data: readonly Item[], hasMore: boolean) {
      this.data = data
      this.has_more = hasMore
    }
  }
  return PageDto
}
