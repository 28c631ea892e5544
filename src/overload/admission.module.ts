import { type DynamicModule, Module } from '@nestjs/common'
import { AdmissionMetrics } from './admission-metrics.js'
import { Admission } from './admission.js'
import { AdmissionWatch } from './overload.module.js'

/** Who is let in; the server shares `Admission`, as it answers before Nest does. */
@Module({})
export class AdmissionModule {
  static forRoot(admission: Admission): DynamicModule {
    return {
      module: AdmissionModule,
      providers: [{ provide: Admission, useValue: admission }, AdmissionMetrics, AdmissionWatch],
    }
  }
}
