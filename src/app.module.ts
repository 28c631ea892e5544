import { type DynamicModule, Module } from '@nestjs/common'
import { AdminModule } from './admin/admin.module.js'
import { AudioModule } from './audio/audio.module.js'
import { ChatModule } from './chat/chat.module.js'
import type { Admission } from './common/admission/admission.js'
import { AdmissionModule } from './common/admission/admission.module.js'
import { TracingModule } from './common/observability/tracing/tracing.module.js'
import { ObservabilityModule } from './common/observability/observability.module.js'
import type { Logger } from './common/observability/logger.js'
import type { CallEndings } from './common/observability/call-endings.js'
import type { Readiness } from './common/observability/readiness.js'
import { ConfigurationModule, type ConfigurationOptions } from './config/config.module.js'
import { DocumentModule } from './document/document.module.js'
import { HealthModule } from './health/health.module.js'
import { ImageModule } from './image/image.module.js'
import { KeysModule } from './keys/keys.module.js'
import { AccountModule } from './account/account.module.js'
import { MessagesModule } from './messages/messages.module.js'
import { MetricsModule } from './metrics/metrics.module.js'
import { ModelsModule } from './models/models.module.js'
import { RealtimeModule } from './realtime/realtime.module.js'
import { UsageModule } from './usage/usage.module.js'
import { VideoModule } from './video/video.module.js'

/** The whole gateway: one module per capability, on one configuration. */
@Module({})
export class AppModule {
  static forRoot(
    configuration: ConfigurationOptions,
    readiness: Readiness,
    endings: CallEndings,
    admission: Admission,
    logger: Logger,
  ): DynamicModule {
    return {
      module: AppModule,
      imports: [
        ConfigurationModule.forRoot(configuration),
        ObservabilityModule.forRoot(readiness, endings, logger),
        AdmissionModule.forRoot(admission),
        // Express looks at routes in this order: the busiest first.
        ChatModule,
        MessagesModule,
        AudioModule,
        RealtimeModule,
        VideoModule,
        ImageModule,
        DocumentModule,
        ModelsModule,
        UsageModule,
        AccountModule,
        MetricsModule,
        TracingModule,
        KeysModule,
        AdminModule,
        HealthModule,
      ],
    }
  }
}
