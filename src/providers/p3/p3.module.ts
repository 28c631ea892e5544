import { Injectable, Module } from '@nestjs/common'
import { HttpModule } from '../../upstream/upstream.module.js'
import type { ProviderCapabilities } from '../contract.js'
import { P3SpeechProvider } from './p3-speech.js'

/** P3, speech with emotion over HTTP. */
@Injectable()
export class P3Capabilities implements ProviderCapabilities {
  constructor(readonly speech: P3SpeechProvider) {}
}

@Module({
  imports: [HttpModule],
  providers: [P3SpeechProvider, P3Capabilities],
  exports: [P3Capabilities],
})
export class P3Module {}
