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

/** Made once for each server, of routes that do not change. */
const tables = new WeakMap<Application, RouteTable>()

/** The methods that exist for a path, upper case; empty for a path that no route knows. */
export function methodsOf(app: Application, path: string): readonly string[] {
  let table = tables.get(app)
  if (table === undefined) tables.set(app, (table = new RouteTable(routesOf(app), () => OTHER.family)))
  const { methods } = table.find({ endpoint: undefined, path })
  // A route of every method answers that there is nothing at the path.
  return methods.size < METHODS.length ? [...methods].sort() : []
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
