import { METHODS } from 'node:http'
import { Injectable, Module, type OnApplicationBootstrap } from '@nestjs/common'
import { HttpAdapterHost } from '@nestjs/core'
import type { Application } from 'express'
import { EndpointTable, PathTable } from '../core/endpoint.js'
import type { RequestContext } from '../core/request-context.js'

/** The part of Express' router used here: its layers, each with a route or none. */
interface RouterLayer {
  readonly route?: { readonly path: string; readonly methods: Readonly<Record<string, boolean>> }
}

/** Every route, in the order it was registered; its methods in upper case. */
export const routesOf = (app: Application): { readonly path: string; readonly methods: readonly string[] }[] =>
  layersOf(app).flatMap(({ route }) =>
    route === undefined ? [] : [{ path: route.path, methods: Object.keys(route.methods).map((m) => m.toUpperCase()) }],
  )

/**
 * The methods that exist for a path, upper case; empty for a path that no route knows. A path that a route names in full is no
 * parameter of another one.
 */
export function methodsOf(app: Application, path: string): readonly string[] {
  const matching = layersOf(app).flatMap(({ route }) =>
    route !== undefined && matches(route.path, path)
      ? [{ template: route.path, served: Object.keys(route.methods) }]
      : [],
  )
  // A route of every method answers that there is nothing at the path.
  const real = matching.filter(({ served }) => served.length !== METHODS.length)
  const literal = real.filter(({ template }) => template === path)
  const routes = literal.length > 0 ? literal : real
  const methods = new Set(routes.flatMap(({ served }) => served.map((method) => method.toUpperCase())))
  if (methods.has('GET')) methods.add('HEAD')
  return [...methods].sort()
}

function matches(template: string, path: string): boolean {
  const table = new PathTable<true>()
  table.set(template, true)
  return table.find(path) === true
}

const layersOf = (app: Application): readonly RouterLayer[] =>
  (app.router as unknown as { readonly stack: readonly RouterLayer[] }).stack

/** A route template of the server: `/imggen/task/:id/fetch`, `/admin/*path`. */
interface RouteTemplate {
  readonly path: string
  /** Upper case. */
  readonly methods: readonly string[]
}

/** Label of methods that no route has, as clients may invent any number of them. */
export const OTHER_METHOD = 'other'

/** A route as a metric label: its template, never the requested path. */
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

  /** The route of a request; without parsing its path again if its endpoint is known. */
  find({ endpoint, path }: Pick<RequestContext, 'endpoint' | 'path'>): KnownRoute {
    return this.routes.find(endpoint?.path ?? path) ?? OTHER
  }
}

function withHead(methods: readonly string[]): ReadonlySet<string> {
  const known = new Set(methods)
  if (known.has('GET')) known.add('HEAD')
  return known
}

/** The routes of this server, once registered. */
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

/** Provides `KnownRoutes` for metrics and traces; needs an application with a server. */
@Module({ providers: [KnownRoutes], exports: [KnownRoutes] })
export class KnownRoutesModule {}
