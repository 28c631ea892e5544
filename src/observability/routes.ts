import { Injectable, Module, type OnApplicationBootstrap } from '@nestjs/common'
import { HttpAdapterHost } from '@nestjs/core'
import type { Application } from 'express'
import { EndpointTable } from '../core/endpoint.js'
import { PathTable } from '../core/path-table.js'
import type { RequestContext } from '../core/request-context.js'

/** What this reads of Express' router: its layers, each with a route or none. */
interface RouterLayer {
  readonly route?: { readonly path: string; readonly methods: Readonly<Record<string, boolean>> }
}

/** Every route, in the order it was registered; its methods in upper case. */
export const routesOf = (app: Application): { readonly path: string; readonly methods: readonly string[] }[] =>
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

/** A route as the server has it: `/imggen/task/:id/fetch`, `/admin/*path`. */
interface RouteTemplate {
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
  readonly family: string
  readonly methods: ReadonlySet<string>
}

const OTHER: KnownRoute = { template: 'other', family: 'other', methods: new Set() }

/** Finds the template that a path belongs to. */
export class RouteTable {
  private readonly routes = new PathTable<KnownRoute>()

  constructor(templates: readonly RouteTemplate[], familyOf: (template: string) => string) {
    const methodsByPath = new Map<string, string[]>()
    for (const { path, methods } of templates) {
      methodsByPath.set(path, [...(methodsByPath.get(path) ?? []), ...methods])
    }
    for (const [template, methods] of methodsByPath) {
      this.routes.set(template, { template, family: familyOf(template), methods: withHead(methods) })
    }
  }

  /** Of a request. The path of one whose endpoint is known was taken apart before, and is not again. */
  find({ endpoint, path }: Pick<RequestContext, 'endpoint' | 'path'>): KnownRoute {
    return this.routes.find(endpoint?.path ?? path) ?? OTHER
  }
}

function withHead(methods: readonly string[]): ReadonlySet<string> {
  const known = new Set(methods)
  if (known.has('GET')) known.add('HEAD')
  return known
}

/** The routes of this server, once it has them. */
@Injectable()
export class KnownRoutes implements OnApplicationBootstrap {
  table = new RouteTable([], () => OTHER.family)

  constructor(
    private readonly host: HttpAdapterHost,
    private readonly endpoints: EndpointTable,
  ) {}

  get families(): readonly string[] {
    return this.endpoints.metricFamilies
  }

  /** Nest calls it when every module has registered its routes. */
  onApplicationBootstrap(): void {
    const routes = routesOf(this.host.httpAdapter.getInstance<Application>())
    this.table = new RouteTable(routes, (template) => this.endpoints.metricFamilyOf(template))
  }
}

/** Gives `KnownRoutes` to those who count or trace by route; needs an application with a server. */
@Module({ providers: [KnownRoutes], exports: [KnownRoutes] })
export class KnownRoutesModule {}
