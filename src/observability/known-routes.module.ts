import { Module } from '@nestjs/common'
import { KnownRoutes } from './observability-known-routes.js'

/** Gives `KnownRoutes` to those who count or trace by route; needs an application with a server. */
@Module({ providers: [KnownRoutes], exports: [KnownRoutes] })
export class KnownRoutesModule {}
