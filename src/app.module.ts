import { type DynamicModule, Module } from '@nestjs/common'
import { AudioModule } from './audio/audio.module.js'
import { ChatModule } from './chat/chat.module.js'
import { ObservabilityModule } from './common/observability/observability.module.js'
import type { Logger } from './common/observability/logger.js'
import type { CallEndings } from './common/observability/call-endings.js'
import type { Readiness } from './common/observability/readiness.js'
import { ConfigurationModule, type ConfigurationOptions } from './config/config.module.js'
import { DocumentModule } from './document/document.module.js'
import { HealthModule } from './health/health.module.js'
import { ImageModule } from './image/image.module.js'
import { MessagesModule } from './messages/messages.module.js'
import { ModelsModule } from './models/models.module.js'
import { RealtimeModule } from './realtime/realtime.module.js'
import { VideoModule } from './video/video.module.js'

/** The whole gateway: one module per capability, on one configuration. */
@Module({})
export class AppModule {
  static forRoot(
    configuration: ConfigurationOptions,
    readiness: Readiness,
    endings: CallEndings,
    logger: Logger,
  ): DynamicModule {
    return {
      module: AppModule,
      imports: [
        ConfigurationModule.forRoot(configuration),
        ObservabilityModule.forRoot(readiness, endings, logger),
        // Express looks at routes in this order: the busiest first.
        ChatModule,
        MessagesModule,
        AudioModule,
        RealtimeModule,
        VideoModule,
        ImageModule,
        DocumentModule,
        ModelsModule,
        HealthModule,
      ],
    }
  }
}
