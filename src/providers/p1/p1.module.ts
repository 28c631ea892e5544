import { Injectable, Module } from '@nestjs/common'
import { HttpModule, WebSocketModule } from '../../upstream/upstream.module.js'
import type { ProviderCapabilities } from '../contract.js'
import { P1ChatProvider } from './p1-chat.js'
import { P1RealtimeProvider } from './p1-realtime.js'
import { P1SpeechProvider } from './p1-speech.js'
import { P1TranscriptionProvider } from './p1-transcription.js'

/** P1, the general upstream: speech, transcription, translation and chat over HTTP, realtime over WebSocket. */
@Injectable()
export class P1Capabilities implements ProviderCapabilities {
  readonly translation: P1TranscriptionProvider

  constructor(
    readonly speech: P1SpeechProvider,
    readonly transcription: P1TranscriptionProvider,
    readonly chat: P1ChatProvider,
    readonly realtime: P1RealtimeProvider,
  ) {
    this.translation = transcription
  }
}

@Module({
  imports: [HttpModule, WebSocketModule],
  providers: [P1SpeechProvider, P1TranscriptionProvider, P1ChatProvider, P1RealtimeProvider, P1Capabilities],
  exports: [P1Capabilities],
})
export class P1Module {}
