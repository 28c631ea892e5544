import { Injectable, Module, type OnApplicationBootstrap } from '@nestjs/common'
import { HttpAdapterHost } from '@nestjs/core'
import type { Application } from 'express'

/** What this reads of Express' router: its layers, each with a route or none. */
interface RouterLayer {
  readonly route?: { readonly path: string; readonly methods: Readonly<Record<string, boolean>> }
}

/** Every route, in the order it was registered; its methods in upper case. */
const routesOf = (app: Application): { readonly path: string; readonly methods: readonly string[] }[] =>
  layersOf(app).flatMap(({ route }) =>
    route === undefined ? [] : [{ path: route.path, methods: Object.keys(route.methods).map((m) => m.toUpperCase()) }],
  )

/** The methods that exist for a path, upper case; empty for a path that no route knows. */
export function methodsOf(app: Application, path: string): readonly string[] {
  const methods = new Set<string>()
  for (const { route } of layersOf(app)) {
    if (route === undefined || !matchesPattern(route.path, path)) continue
    for (const method of Object.keys(route.methods)) methods.add(method.toUpperCase())
  }
  if (methods.has('GET')) methods.add('HEAD')
  return [...methods].sort()
}

/** Our routes are literal segments and `:parameters`, nothing else. */
function matchesPattern(pattern: string, path: string): boolean {
  const expected = pattern.split('/')
  const segments = path.split('/')
  return (
    expected.length === segments.length &&
    expected.every((segment, index) => (segment.startsWith(':') ? segments[index] !== '' : segment === segments[index]))
  )
}

const layersOf = (app: Application): readonly RouterLayer[] =>
  (app.router as unknown as { readonly stack: readonly RouterLayer[] }).stack

/** What a route is about, for figures that need not tell each route. */
export type MetricFamily =
  | 'chat'
  | 'messages'
  | 'speech'
  | 'transcription'
  | 'translation'
  | 'realtime'
  | 'video'
  | 'image'
  | 'document'
  | 'other'

const PREFIXES: readonly (readonly [prefix: string, family: MetricFamily])[] = [
  ['/v1/chat/', 'chat'],
  ['/v1/messages', 'messages'],
  ['/v1/audio/speech', 'speech'],
  ['/v1/audio/transcriptions', 'transcription'],
  ['/v1/audio/translations', 'translation'],
  ['/v1/realtime', 'realtime'],
  ['/vidgen/', 'video'],
  ['/imggen/', 'image'],
  ['/v1/document/', 'document'],
]

export const METRIC_FAMILIES: readonly MetricFamily[] = [...PREFIXES.map(([, family]) => family), 'other']

/** The family of a route's template. */
const familyOf = (template: string): MetricFamily =>
  PREFIXES.find(([prefix]) => template.startsWith(prefix))?.[1] ?? 'other'

/** A route as the server has it: `/imggen/task/:id/fetch`, `/admin/*path`. */
export interface RouteTemplate {
  readonly path: string
  /** Upper case. */
  readonly methods: readonly string[]
}

/** Methods that no route has; callers may make up as many as they like. */
export const OTHER_METHOD = 'other'

/** What paths are counted under: a template, and not what a caller made up. */
export interface KnownRoute {
  /** `other` for unknown paths. */
  readonly template: string
  readonly family: MetricFamily
  readonly methods: ReadonlySet<string>
}

const OTHER: KnownRoute = { template: 'other', family: 'other', methods: new Set() }

/** Finds the template that a path belongs to. Paths are matched as the server matches them: by case, slash for slash. */
export class RouteTable {
  private readonly literal = new Map<string, KnownRoute>()
  /** By the number of their segments. */
  private readonly patterns = new Map<number, { readonly segments: readonly string[]; readonly route: KnownRoute }[]>()
  private mostSegments = 0
  /** Of routes that take whatever follows. */
  private readonly prefixes: { readonly prefix: string; readonly route: KnownRoute }[] = []

  constructor(templates: readonly RouteTemplate[]) {
    const methodsByPath = new Map<string, string[]>()
    for (const { path, methods } of templates) {
      methodsByPath.set(path, [...(methodsByPath.get(path) ?? []), ...methods])
    }
    for (const [path, methods] of methodsByPath) this.add(knownRoute(path, methods))
  }

  find(path: string): KnownRoute {
    const known = this.literal.get(path)
    if (known !== undefined) return known
    // Of a path that is longer than any of ours nobody needs to know how long.
    const segments = path.split('/', this.mostSegments + 1)
    const candidates = this.patterns.get(segments.length) ?? []
    const pattern = candidates.find((candidate) => matches(candidate.segments, segments))
    return (pattern ?? this.prefixes.find(({ prefix }) => path.startsWith(prefix)))?.route ?? OTHER
  }

  private add(route: KnownRoute): void {
    const wildcard = route.template.indexOf('*')
    if (wildcard >= 0) {
      this.prefixes.push({ prefix: route.template.slice(0, wildcard), route })
      return
    }
    if (!route.template.includes(':')) {
      this.literal.set(route.template, route)
      return
    }
    const segments = route.template.split('/')
    this.mostSegments = Math.max(this.mostSegments, segments.length)
    const others = this.patterns.get(segments.length) ?? []
    this.patterns.set(segments.length, [...others, { segments, route }])
  }
}

function knownRoute(template: string, methods: readonly string[]): KnownRoute {
  const known = new Set(methods)
  if (known.has('GET')) known.add('HEAD')
  return { template, family: familyOf(template), methods: known }
}

const matches = (expected: readonly string[], segments: readonly string[]): boolean =>
  expected.every((segment, index) => (segment.startsWith(':') ? segments[index] !== '' : segment === segments[index]))

/** The routes of this server, once it has them. */
@Injectable()
export class KnownRoutes implements OnApplicationBootstrap {
  table = new RouteTable([])

  constructor(private readonly host: HttpAdapterHost) {}

  /** Nest calls it when every module has registered its routes. */
  onApplicationBootstrap(): void {
    this.table = new RouteTable(routesOf(this.host.httpAdapter.getInstance<Application>()))
  }
}

/** Gives `KnownRoutes` to those who count or trace by route; needs an application with a server. */
@Module({ providers: [KnownRoutes], exports: [KnownRoutes] })
export class KnownRoutesModule {}
