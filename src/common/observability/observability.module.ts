import { type DynamicModule, Module } from '@nestjs/common'
import { Readiness } from './readiness.js'

/** What the process says about itself; the server shares the one `Readiness`, as it answers before Nest does. */
@Module({})
export class ObservabilityModule {
  static forRoot(readiness: Readiness): DynamicModule {
    return {
      module: ObservabilityModule,
      global: true,
      providers: [{ provide: Readiness, useValue: readiness }],
      exports: [Readiness],
    }
  }
}
