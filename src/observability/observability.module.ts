import { type DynamicModule, Module } from '@nestjs/common'
import type { Logger } from './logger.js'
import { Metrics } from './metrics.js'
import { Readiness } from './readiness.js'
import { CallEndings } from './request-hooks.js'

/** The process's own log, for lines that are about no single request; injected as `Logger`. */
export const LOGGER = Symbol('logger')

/** What the process says about itself; the server shares `Readiness` and `CallEndings`, as it answers before Nest does. */
@Module({})
export class ObservabilityModule {
  static forRoot(readiness: Readiness, endings: CallEndings, logger: Logger): DynamicModule {
    return {
      module: ObservabilityModule,
      global: true,
      providers: [
        { provide: Readiness, useValue: readiness },
        { provide: CallEndings, useValue: endings },
        Metrics,
        { provide: LOGGER, useValue: logger },
      ],
      exports: [Readiness, CallEndings, Metrics, LOGGER],
    }
  }
}
