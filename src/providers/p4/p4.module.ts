import { Injectable, Module } from '@nestjs/common'
import { HttpModule } from '../../upstream/upstream.module.js'
import type { ProviderCapabilities } from '../provider-capabilities.js'
import { P4TranscriptionProvider } from './p4-transcription.js'

/** P4, a relay for the standard transcription model. */
@Injectable()
export class P4Capabilities implements ProviderCapabilities {
  readonly translation: P4TranscriptionProvider

  constructor(readonly transcription: P4TranscriptionProvider) {
    this.translation = transcription
  }
}

@Module({
  imports: [HttpModule],
  providers: [P4TranscriptionProvider, P4Capabilities],
  exports: [P4Capabilities],
})
export class P4Module {}
