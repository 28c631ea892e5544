import { Module } from '@nestjs/common'
import { HttpModule } from '../../common/http/http.module.js'
import type { ProviderCapabilities } from '../contracts/provider-capabilities.js'
import { P4TranscriptionProvider } from './p4-transcription.provider.js'

/** P4, a relay for the standard transcription model. */
export abstract class P4Capabilities implements ProviderCapabilities {
  abstract readonly transcription: P4TranscriptionProvider
  abstract readonly translation: P4TranscriptionProvider
}

@Module({
  imports: [HttpModule],
  providers: [
    P4TranscriptionProvider,
    {
      provide: P4Capabilities,
      inject: [P4TranscriptionProvider],
      useFactory: (provider: P4TranscriptionProvider): P4Capabilities => ({
        transcription: provider,
        translation: provider,
      }),
    },
  ],
  exports: [P4Capabilities],
})
export class P4Module {}
