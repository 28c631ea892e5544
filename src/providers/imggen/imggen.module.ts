import { Injectable, Module } from '@nestjs/common'
import { HttpModule } from '../../upstream/upstream.module.js'
import type { ProviderCapabilities } from '../provider-capabilities.js'
import { ImggenImageProvider } from './imggen-image.js'

/** Imggen, the image proxy family: tasks that were made there, read by their id. */
@Injectable()
export class ImggenCapabilities implements ProviderCapabilities {
  constructor(readonly image: ImggenImageProvider) {}
}

@Module({
  imports: [HttpModule],
  providers: [ImggenImageProvider, ImggenCapabilities],
  exports: [ImggenCapabilities],
})
export class ImggenModule {}
