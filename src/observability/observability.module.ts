import { type DynamicModule, Module } from '@nestjs/common'
import type { Logger } from './logger.js'
import { Metrics } from './metrics.js'
import { Readiness } from './readiness.js'
import { RequestHooks } from './request-hooks.js'

/** The process's own log, for lines that are about no single request; injected as `Logger`. */
export const LOGGER = Symbol('logger')

/** What the process says about itself; the server shares `Readiness` and `CallEndings`, as it answers before Nest does. */
@Module({})
export class ObservabilityModule {
  static forRoot(readiness: Readiness, endings: RequestHooks, logger: Logger): DynamicModule {
    return {
      module: ObservabilityModule,
      global: true,
      providers: [
        { provide: Readiness, useValue: readiness },
        { provide: RequestHooks, useValue: endings },
        Metrics,
        { provide: LOGGER, useValue: logger },
      ],
      exports: [Readiness, RequestHooks, Metrics, LOGGER],
    }
  }
}
