import { Module } from '@nestjs/common'
import { HttpModule } from '../../common/http/http.module.js'
import type { ProviderCapabilities } from '../contracts/provider-capabilities.js'
import { P1ChatProvider } from './p1-chat.provider.js'
import { P1SpeechProvider } from './p1-speech.provider.js'
import { P1TranscriptionProvider } from './p1-transcription.provider.js'

/** P1, the general upstream: speech, transcription, translation and chat over HTTP. */
export abstract class P1Capabilities implements ProviderCapabilities {
  abstract readonly speech: P1SpeechProvider
  abstract readonly transcription: P1TranscriptionProvider
  abstract readonly translation: P1TranscriptionProvider
  abstract readonly chat: P1ChatProvider
}

@Module({
  imports: [HttpModule],
  providers: [
    P1SpeechProvider,
    P1TranscriptionProvider,
    P1ChatProvider,
    {
      provide: P1Capabilities,
      inject: [P1SpeechProvider, P1TranscriptionProvider, P1ChatProvider],
      useFactory: (
        speech: P1SpeechProvider,
        transcription: P1TranscriptionProvider,
        chat: P1ChatProvider,
      ): P1Capabilities => ({ speech, transcription, translation: transcription, chat }),
    },
  ],
  exports: [P1Capabilities],
})
export class P1Module {}
