import { Module } from '@nestjs/common'
import { HttpModule } from '../common/http/http.module.js'
import { ChannelReports } from './channel-reports.js'
import { ImggenCapabilities, ImggenModule } from './imggen/imggen.module.js'
import { M1Capabilities, M1Module } from './m1/m1.module.js'
import { P1Capabilities, P1Module } from './p1/p1.module.js'
import { P2Capabilities, P2Module } from './p2/p2.module.js'
import { P3Capabilities, P3Module } from './p3/p3.module.js'
import { P4Capabilities, P4Module } from './p4/p4.module.js'
import { ProviderRouter } from './provider-router.js'
import { ChannelHealth } from './routing/channel-health.js'
import { ChannelMetrics } from './routing/channel-metrics.js'
import { ChannelRouter } from './routing/channel-router.js'
import { ProviderRegistry } from './routing/provider-registry.js'
import { RetryBudget } from './routing/retry-budget.js'
import { ReaderCapabilities, ReaderModule } from './reader/reader.module.js'
import { VidgenCapabilities, VidgenModule } from './vidgen/vidgen.module.js'

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
