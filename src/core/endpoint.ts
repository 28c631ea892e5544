import type { IncomingHttpHeaders } from 'node:http'
import type { ModelCapability, ModelClass } from '../config/model-classes.js'
import type { ErrorKind } from './errors.js'
import type { Schema } from './json-schema.js'
import type { EstimatedUse } from './quota.js'

/** The wire format an endpoint's clients read: it decides the form of errors and the names of the limit headers. */
export type Dialect = 'openai' | 'openai-audio' | 'messages' | 'task' | 'image'

/** Of every path that no endpoint's dialect claims. */
const DEFAULT_DIALECT: Dialect = 'openai'

/** The headers in which an endpoint's clients may send their key; the first is what a missing key's message asks for. */
type KeyHeader = 'authorization' | 'x-api-key' | 'sec-websocket-protocol'

/** The setting of `limits` that bounds a body. */
export type BodyLimitSetting = 'jsonBodyBytes' | 'imageBodyBytes' | 'audioBodyBytes' | 'documentBytes'

export const USAGE_KINDS = ['request', 'response', 'input_transcription', 'task'] as const
export type UsageKind = (typeof USAGE_KINDS)[number]

/** Few and known, as metrics are counted by them. */
export type UsageClass = ModelClass | 'document'

/** What an endpoint leaves in the usage records. */
export interface Billing {
  /** The request itself; each response, or input transcription, within it; the task it has made, or found ended. */
  readonly records: readonly UsageKind[]
  /** Of requests whose model was not found, or that name none. */
  readonly usageClass: UsageClass
  /** What it is priced as where requests name no model. */
  readonly model: string | undefined
}

/** Computes, from what an endpoint's requests hold, what one is expected to use before its upstream says so. */
type Estimate = (...request: never[]) => EstimatedUse

/** A parameter of a request in the OpenAPI document. */
export interface ParameterDocumentation {
  readonly in: 'path' | 'query' | 'header'
  readonly name: string
  readonly description: string
  readonly schema: Schema
  readonly required?: boolean
  /** How lists stand in a query; false = with commas. */
  readonly explode?: boolean
}

/** Media type → form. */
type Content = Readonly<Record<string, Schema>>

/** A success of a route. */
export interface AnswerDocumentation {
  readonly description: string
  readonly content?: Content
  readonly headers?: Readonly<Record<string, { readonly description: string; readonly schema: Schema }>>
}

/** What callers read of a route in the OpenAPI document; errors follow from the route itself, but for those named here. */
export interface RouteDocumentation {
  /** Unique; generated clients call their function so. */
  readonly operationId: string
  readonly tag: string
  readonly summary: string
  readonly description: string
  readonly parameters?: readonly ParameterDocumentation[]
  readonly body?: Content
  /** Absent status = 200. */
  readonly answer: AnswerDocumentation & { readonly status?: number }
  /** By status: where an error's status is no error here. */
  readonly otherAnswers?: Readonly<Record<number, AnswerDocumentation>>
  readonly errors?: readonly ErrorKind[]
  /** Members of the operation that OpenAPI has no words for. */
  readonly extensions?: Readonly<Record<`x-${string}`, unknown>>
}

/** What is served at a path, as callers see it. */
export interface RouteSpec {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** Literal segments and `:parameters`; a `*parameter` at the end takes one segment or more. */
  readonly path: `/${string}`
  readonly dialect: Dialect
  /** What requests ask of the model they name; `none` where they name no model. */
  readonly capability: ModelCapability | 'none'
  /** Empty = whoever calls needs no key. */
  readonly keyHeaders: readonly KeyHeader[]
  /** Whether requests count against the limits of their key. */
  readonly rateLimit: 'counted' | 'exempt'
  /** Bytes where no setting bounds the body; 0 = none is read. */
  readonly bodyLimit: BodyLimitSetting | number
  /** `none` = not for callers. */
  readonly documentation: RouteDocumentation | 'none'
}

/** Everything the gateway knows of an endpoint by its path. Each member must be said: none is true by omission. */
export interface EndpointSpec extends RouteSpec {
  /** Unique; for people. */
  readonly name: string
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly billing: Billing | 'none'
  /** What token and audio limits reserve; `each_response` = within a session, as responses are asked for. */
  readonly estimate: Estimate | 'each_response' | 'none'
  /** For figures that need not tell each route; `other` = of no family. */
  readonly metricFamily: string
  /** `template` = the path holds a secret and never stands in a log. */
  readonly loggedPath: 'path' | 'template'
}

/** What is known of a path before any route has seen the request. */
export interface PathMatch {
  /** The dialect of errors at the path; on a shared path, of clients without the headers of messages. */
  readonly dialect: Dialect
  /** Clients of the messages dialect call here as well, known by their headers (`dialectFor`). */
  readonly isShared: boolean
  /** One for each method; none of an unknown path. */
  readonly endpoints: readonly EndpointSpec[]
  /** Stands for the path in the log; undefined where the path itself does. */
  readonly loggedPath: string | undefined
}

export const UNKNOWN_PATH: PathMatch = {
  dialect: DEFAULT_DIALECT,
  isShared: true,
  endpoints: [],
  loggedPath: undefined,
}

/** The dialects of a route's clients: a chat route that reads `x-api-key` has clients of messages, too. */
export const dialectsOf = ({ dialect, keyHeaders }: Pick<RouteSpec, 'dialect' | 'keyHeaders'>): readonly Dialect[] =>
  dialect === DEFAULT_DIALECT && keyHeaders.includes('x-api-key') ? [dialect, 'messages'] : [dialect]

/** The answers of a shared path depend on them. */
export const DIALECT_HEADERS = 'anthropic-version, x-api-key'

/** Clients of the messages dialect send these headers, and no others do. */
export const isOfMessagesClient = (headers: IncomingHttpHeaders): boolean =>
  headers['anthropic-version'] !== undefined || headers['x-api-key'] !== undefined

/** The dialect of a request's client; `isOfMessages` = as `isOfMessagesClient` says. */
export const dialectFor = ({ dialect, isShared }: PathMatch, isOfMessages: boolean): Dialect =>
  isShared && isOfMessages ? 'messages' : dialect

/** The endpoint that answers a method at a path, as Express routes it: GET answers HEAD. */
export function endpointFor({ endpoints }: PathMatch, method: string): EndpointSpec | undefined {
  const routed = method === 'HEAD' ? 'GET' : method
  for (const endpoint of endpoints) if (endpoint.method === routed) return endpoint
  return undefined
}

const OTHER_FAMILY = 'other'

/** Finds the endpoint of a request; made once of all endpoints. Throws where two contradict each other. */
export class EndpointTable {
  private readonly known = new PathTable<PathMatch>()
  /** What unknown paths have in common with the endpoints they stand beside, by `prefixOf`. */
  private readonly prefixes = new Map<string, PathMatch>()
  /** In the order of the endpoints; `other` is the last. */
  readonly metricFamilies: readonly string[]

  constructor(readonly endpoints: readonly EndpointSpec[]) {
    assertUnique(endpoints.map(({ name }) => name))
    assertUnique(endpoints.map(({ method, path }) => `${method} ${path}`))
    const families = new Set(endpoints.map(({ metricFamily }) => metricFamily))
    families.delete(OTHER_FAMILY)
    this.metricFamilies = [...families, OTHER_FAMILY]
    for (const endpoint of endpoints) this.addPrefix(endpoint)
    for (const path of new Set(endpoints.map((endpoint) => endpoint.path))) {
      this.addPath(
        path,
        endpoints.filter((endpoint) => endpoint.path === path),
      )
    }
  }

  /** Called once for each request. */
  find(path: string): PathMatch {
    return this.known.find(path) ?? this.unknown(path)
  }

  /** For failures that come before a request is looked at; nothing but the prefix of an unknown path is read. */
  dialectOf(path: string, isOfMessages = false): Dialect {
    return dialectFor(this.known.get(path) ?? this.unknown(path), isOfMessages)
  }

  /** The family of a route's template, endpoint or not. */
  metricFamilyOf(template: string): string {
    return this.known.get(template)?.endpoints[0]?.metricFamily ?? OTHER_FAMILY
  }

  private unknown(path: string): PathMatch {
    return this.prefixes.get(prefixOf(path)) ?? UNKNOWN_PATH
  }

  private addPrefix({ name, path, dialect }: EndpointSpec): void {
    const prefix = prefixOf(path)
    const beside = this.prefixes.get(prefix)
    if (beside !== undefined && beside.dialect !== dialect) {
      throw new Error(`The endpoint ${name} has the dialect ${dialect}, others under ${prefix} have ${beside.dialect}.`)
    }
    this.prefixes.set(prefix, { ...UNKNOWN_PATH, dialect, isShared: dialect === DEFAULT_DIALECT })
  }

  private addPath(path: string, endpoints: readonly EndpointSpec[]): void {
    const { dialect } = this.unknown(path)
    const isShared = endpoints.some((endpoint) => dialectsOf(endpoint).length > 1)
    const isSecret = endpoints.some((endpoint) => endpoint.loggedPath === 'template')
    const loggedPath = isSecret ? path : undefined
    this.known.set(path, { dialect, isShared, endpoints, loggedPath })
    // A path that is longer, or too short, may hold the secret of one that is known.
    if (isSecret)
      this.known.set(`${path.slice(0, path.indexOf(':'))}*`, { dialect, isShared, endpoints: [], loggedPath })
  }
}

const VERSION = '/v1'

/** The segments that say whose a path is: the first, or two where the first is the version. */
function prefixOf(path: string): string {
  const first = path.indexOf('/', 1)
  if (first === -1) return path
  if (first !== VERSION.length || !path.startsWith(VERSION)) return path.slice(0, first)
  const second = path.indexOf('/', first + 1)
  return second === -1 ? path : path.slice(0, second)
}

function assertUnique(texts: readonly string[]): void {
  const twice = texts.find((text, index) => texts.indexOf(text) !== index)
  if (twice !== undefined) throw new Error(`Two endpoints are called ${twice}.`)
}

interface Pattern<Value> {
  readonly segments: readonly string[]
  readonly value: Value
}

/** As the OpenAPI document spells it. */
export const documentedPath = (template: string): string => template.replaceAll(/[:*](\w+)/g, '{$1}')

/**
 * Path templates → values, matched as the server matches them: by case, slash for slash. A template is literal, or has
 * `:parameters` for whole segments, or takes whatever follows its `*`, nothing only where the `*` has no name; literal ones go
 * first, those with `*` last.
 */
export class PathTable<Value> {
  private readonly literal = new Map<string, Value>()
  /** By the number of their segments. */
  private readonly patterns = new Map<number, Pattern<Value>[]>()
  private mostSegments = 0
  private readonly prefixes: { readonly prefix: string; readonly leastLength: number; readonly value: Value }[] = []

  set(template: string, value: Value): void {
    // A template is found under its own name as well, without being taken apart.
    this.literal.set(template, value)
    const wildcard = template.indexOf('*')
    if (wildcard >= 0) {
      const leastLength = wildcard + (template.endsWith('*') ? 0 : 1)
      this.prefixes.push({ prefix: template.slice(0, wildcard), leastLength, value })
    } else if (template.includes(':')) this.addPattern(template.split('/'), value)
  }

  /** Of a literal path, or of a template; one Map lookup. */
  get(path: string): Value | undefined {
    return this.literal.get(path)
  }

  find(path: string): Value | undefined {
    return this.literal.get(path) ?? this.findPattern(path)
  }

  private findPattern(path: string): Value | undefined {
    // A path longer than every template need not be taken apart to its end.
    const segments = path.split('/', this.mostSegments + 1)
    for (const pattern of this.patterns.get(segments.length) ?? []) {
      if (matches(pattern.segments, segments)) return pattern.value
    }
    return this.prefixes.find(({ prefix, leastLength }) => path.length >= leastLength && path.startsWith(prefix))?.value
  }

  private addPattern(segments: readonly string[], value: Value): void {
    this.mostSegments = Math.max(this.mostSegments, segments.length)
    const others = this.patterns.get(segments.length) ?? []
    this.patterns.set(segments.length, [...others, { segments, value }])
  }
}

/** Both have as many segments. */
const matches = (template: readonly string[], segments: readonly string[]): boolean =>
  template.every((segment, index) => (segment.startsWith(':') ? segments[index] !== '' : segment === segments[index]))
