import { AdminModule } from '../admin/admin.module.js'
import {
  type AnswerDocumentation,
  dialectsOf,
  documentedPath,
  type ParameterDocumentation,
  type RouteDocumentation,
  type RouteSpec,
} from '../core/endpoint.js'
import type { Schema } from '../core/json-schema.js'
import { type ErrorResponse, errorResponsesOf } from '../dialects/error-docs.js'
import { limitHeaderNames } from '../limits/limit-errors.js'
import { HEALTH_ROUTES } from '../observability/readiness.js'
import { ENDPOINTS } from './capabilities.js'
import { DESCRIPTION, HEADERS, SECURITY_SCHEMES, securityOf, TAGS } from './openapi-parts.js'

/** Interface version of the specification's audio part; the document's own version. */
const INTERFACE_VERSION = '2026-04'

/** Where a gateway listens that was started as the README says. */
const DEFAULT_SERVER = 'http://127.0.0.1:8080'

type Json = Readonly<Record<string, unknown>>

/** An OpenAPI 3.1 document. */
export interface OpenApiDocument {
  readonly openapi: string
  readonly info: { readonly title: string; readonly version: string; readonly [member: string]: unknown }
  readonly servers: { readonly url: string; readonly description: string }[]
  readonly tags: { readonly name: string; readonly description: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: Readonly<Record<'schemas' | 'responses' | 'headers' | 'securitySchemes', Json>>
}

export interface Operation {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly security: readonly Json[]
  readonly responses: Readonly<Record<string, Json>>
  readonly [member: string]: unknown
}

/** Everything with documentation, in the order in which it is shown. */
const routes = (): readonly RouteSpec[] => [...ENDPOINTS.endpoints, ...AdminModule.routes, ...HEALTH_ROUTES]

/**
 * The OpenAPI document, made from the routes and from the rules that check their requests. `publicUrl`: how the world reaches
 * this gateway.
 */
export function openApiDocument(publicUrl: string = DEFAULT_SERVER): OpenApiDocument {
  const components = new Components()
  const paths: Record<string, Record<string, Operation>> = {}
  for (const route of routes()) {
    if (route.documentation === 'none') continue
    const path = documentedPath(route.path)
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route, route.documentation, components) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Multi-Model Gateway',
      version: INTERFACE_VERSION,
      description: DESCRIPTION,
      license: { name: 'MIT', identifier: 'MIT' },
      contact: { name: 'The operator of this gateway' },
    },
    servers: [{ url: publicUrl.replace(/(?<=.)\/$/, ''), description: 'This gateway' }],
    tags: TAGS,
    paths,
    components: { ...components.all(), headers: HEADERS, securitySchemes: SECURITY_SCHEMES },
  }
}

function operationOf(route: RouteSpec, documentation: RouteDocumentation, components: Components): Operation {
  const { operationId, tag, summary, description, parameters = [], body, extensions } = documentation
  const { answer, otherAnswers = {} } = documentation
  const documented: Readonly<Record<string, AnswerDocumentation>> = { [answer.status ?? 200]: answer, ...otherAnswers }
  const answers = Object.entries(documented).map(([status, { headers, content, ...meaning }]) => {
    const shown = content && { content: components.content(content) }
    return [
      status,
      { description: meaning.description, headers: { ...commonHeaders(route), ...headers }, ...shown },
    ] as const
  })
  const errors = errorResponsesOf(route).map((error) => [error.status, components.response(error, route)] as const)
  return {
    operationId,
    tags: [tag],
    summary,
    description,
    security: securityOf(route),
    ...(parameters.length === 0 ? {} : { parameters: parameters.map((each) => components.parameter(each)) }),
    ...(body && { requestBody: { required: true, content: components.content(body) } }),
    responses: { ...Object.fromEntries(errors), ...Object.fromEntries(answers) },
    ...extensions,
  }
}

const headerRef = (name: string): Json => ({ $ref: `#/components/headers/${name}` })

/** The headers of every answer of a route. */
function commonHeaders(route: RouteSpec): Record<string, Json> {
  const limits = route.rateLimit === 'counted' ? dialectsOf(route).flatMap(limitHeaderNames) : []
  return Object.fromEntries(['x-request-id', ...limits].map((name) => [name, headerRef(name)]))
}

/** Generators of types take a member with a default for one that is always there, in requests too: words alone say it. */
function withSpokenDefault({ default: fallback, ...schema }: Schema): Schema {
  if (fallback === undefined) return schema
  return {
    ...schema,
    description: `${schema.description ?? ''}. Default: ${typeof fallback === 'string' ? fallback : JSON.stringify(fallback)}`,
  }
}

/** The named parts of the document: each is written once, wherever it is used. */
class Components {
  private readonly schemas = new Map<string, Json>()
  private readonly responses = new Map<string, Json>()

  all(): Readonly<Record<'schemas' | 'responses', Json>> {
    const sorted = (parts: ReadonlyMap<string, Json>): Json =>
      Object.fromEntries([...parts].sort(([one], [other]) => (one < other ? -1 : 1)))
    return { schemas: sorted(this.schemas), responses: sorted(this.responses) }
  }

  content(content: Readonly<Record<string, Schema>>): Json {
    return Object.fromEntries(Object.entries(content).map(([type, schema]) => [type, { schema: this.schema(schema) }]))
  }

  parameter({ schema, required = false, ...parameter }: ParameterDocumentation): Json {
    return { ...parameter, required: required || parameter.in === 'path', schema: this.schema(schema) }
  }

  response({ name, status, description, schema }: ErrorResponse, route: RouteSpec): Json {
    if (!this.responses.has(name)) {
      const repeats = [429, 503, 529].includes(status) ? ['retry-after'] : []
      const names = ['x-request-id', 'x-should-retry', ...repeats, ...(status === 405 ? ['allow'] : [])]
      const limits = status === 429 ? dialectsOf(route).flatMap(limitHeaderNames) : []
      this.responses.set(name, {
        description,
        headers: Object.fromEntries([...names, ...limits].map((header) => [header, headerRef(header)])),
        content: this.content({ 'application/json': schema }),
      })
    }
    return { $ref: `#/components/responses/${name}` }
  }

  /** The schema with a reference in the place of each that has a title. Throws where two differ under one title. */
  private schema(schema: Schema): Json {
    const { title } = schema
    if (title === undefined) return this.members(schema)
    const written = this.members(schema)
    const before = this.schemas.get(title)
    if (before !== undefined && JSON.stringify(before) !== JSON.stringify(written)) {
      throw new Error(`Two schemas are called ${title}.`)
    }
    this.schemas.set(title, written)
    return { $ref: `#/components/schemas/${title}` }
  }

  private members(schema: Schema): Json {
    const { properties, items, allOf, oneOf, anyOf, additionalProperties, contentSchema } = schema
    const inner = (schemas: readonly Schema[]): readonly Json[] => schemas.map((each) => this.schema(each))
    return {
      ...schema,
      ...(properties && {
        properties: Object.fromEntries(
          Object.entries(properties).map(([name, each]) => [name, this.schema(withSpokenDefault(each))]),
        ),
      }),
      ...(items && { items: this.schema(items) }),
      ...(contentSchema && { contentSchema: this.schema(contentSchema) }),
      ...(allOf && { allOf: inner(allOf) }),
      ...(oneOf && { oneOf: inner(oneOf) }),
      ...(anyOf && { anyOf: inner(anyOf) }),
      ...(typeof additionalProperties === 'object' && { additionalProperties: this.schema(additionalProperties) }),
    }
  }
}
