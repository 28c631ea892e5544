import { type DynamicModule, Module } from '@nestjs/common'
import { AccountModule } from '../account/account.module.js'
import { AdminModule } from '../admin/admin.module.js'
import { KeysModule } from '../admin/keys.module.js'
import { AudioModule } from '../audio/audio.module.js'
import { ChatModule } from '../chat/chat.module.js'
import { ConfigurationModule, type ConfigurationOptions } from '../config/config-store.js'
import { DocumentModule } from '../document/document.module.js'
import { ImageModule } from '../image/image.module.js'
import { MessagesModule } from '../messages/messages.module.js'
import { ModelsModule } from '../models/models.module.js'
import { HealthModule } from '../observability/health.controller.js'
import type { Logger } from '../observability/logger.js'
import { MetricsModule } from '../observability/metrics.module.js'
import { ObservabilityModule } from '../observability/observability.module.js'
import type { Readiness } from '../observability/readiness.js'
import type { RequestHooks } from '../observability/request-hooks.js'
import { TracingModule } from '../observability/tracing.module.js'
import type { Admission } from '../overload/admission.js'
import { OverloadModule } from '../overload/overload.module.js'
import { RealtimeModule } from '../realtime/realtime.module.js'
import { ProvidersModule } from '../routing/providers.module.js'
import { UsageModule } from '../usage/usage.module.js'
import { VideoModule } from '../video/video.module.js'
import { EndpointsModule } from './endpoints.js'
import { PROVIDERS } from './providers.js'

/** The whole gateway: one module per capability, on one configuration. */
@Module({})
export class AppModule {
  static forRoot(
    configuration: ConfigurationOptions,
    readiness: Readiness,
    endings: RequestHooks,
    admission: Admission,
    logger: Logger,
  ): DynamicModule {
    return {
      module: AppModule,
      imports: [
        ConfigurationModule.forRoot(configuration),
        ObservabilityModule.forRoot(readiness, endings, logger),
        OverloadModule.forRoot(admission),
        EndpointsModule,
        ProvidersModule.forManifests(PROVIDERS),
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
