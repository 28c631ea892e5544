import { Injectable, Module } from '@nestjs/common'
import { HttpModule } from '../../upstream/upstream.module.js'
import type { ProviderCapabilities } from '../provider-capabilities.js'
import { VidgenTokens } from './vidgen-token.js'
import { VidgenVideoProvider } from './vidgen-video.js'

/** Vidgen, video from text and from images as long-running tasks. */
@Injectable()
export class VidgenCapabilities implements ProviderCapabilities {
  constructor(readonly video: VidgenVideoProvider) {}
}

@Module({
  imports: [HttpModule],
  providers: [VidgenTokens, VidgenVideoProvider, VidgenCapabilities],
  exports: [VidgenCapabilities],
})
export class VidgenModule {}
