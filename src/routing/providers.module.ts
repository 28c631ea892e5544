import { Module } from '@nestjs/common'
import { ImggenCapabilities, ImggenModule } from '../providers/imggen/imggen-image.js'
import { M1Capabilities, M1Module } from '../providers/m1/m1-messages.js'
import { P1Capabilities, P1Module } from '../providers/p1/p1.module.js'
import { P2Capabilities, P2Module } from '../providers/p2/p2.module.js'
import { P3Capabilities, P3Module } from '../providers/p3/p3.module.js'
import { P4Capabilities, P4Module } from '../providers/p4/p4-transcription.js'
import { ReaderCapabilities, ReaderModule } from '../providers/reader/reader-document.js'
import { VidgenCapabilities, VidgenModule } from '../providers/vidgen/vidgen-video.js'
import { HttpModule } from '../upstream/upstream.module.js'
import { ChannelMetrics, ChannelRouter } from './channel-router.js'
import { ProviderRegistry } from './channel-selection.js'
import { ChannelHealth } from './circuit-breaker.js'
import { RetryBudget } from './retry.js'
import { ChannelReports, ProviderRouter } from './router.js'

/** Every upstream, behind the one token capabilities know: `ProviderRouter`. */
@Module({
  imports: [HttpModule, P1Module, P2Module, P3Module, P4Module, M1Module, VidgenModule, ImggenModule, ReaderModule],
  providers: [
    ChannelHealth,
    ChannelMetrics,
    RetryBudget,
    {
      provide: ProviderRegistry,
      inject: [
        P1Capabilities,
        P2Capabilities,
        P3Capabilities,
        P4Capabilities,
        M1Capabilities,
        VidgenCapabilities,
        ImggenCapabilities,
        ReaderCapabilities,
      ],
      useFactory: (
        p1: P1Capabilities,
        p2: P2Capabilities,
        p3: P3Capabilities,
        p4: P4Capabilities,
        m1: M1Capabilities,
        vidgen: VidgenCapabilities,
        imggen: ImggenCapabilities,
        reader: ReaderCapabilities,
      ) => new ProviderRegistry({ p1, p2, p3, p4, m1, vidgen, imggen, reader }),
    },
    { provide: ProviderRouter, useClass: ChannelRouter },
    { provide: ChannelReports, useExisting: ChannelHealth },
  ],
  exports: [ProviderRouter, ChannelReports],
})
export class ProvidersModule {}
