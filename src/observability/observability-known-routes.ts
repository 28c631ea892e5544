import { Injectable, type OnApplicationBootstrap } from '@nestjs/common'
import { HttpAdapterHost } from '@nestjs/core'
import type { Application } from 'express'
import { routesOf } from './known-routes.js'
import { RouteTable } from './routes.js'

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
