import { Injectable, Module } from '@nestjs/common'
import { WebSocketModule } from '../../upstream/upstream.module.js'
import type { ProviderCapabilities } from '../contract.js'
import { P2SpeechProvider } from './p2-speech.js'

/** P2, speech over a binary WebSocket. */
@Injectable()
export class P2Capabilities implements ProviderCapabilities {
  constructor(readonly speech: P2SpeechProvider) {}
}

@Module({
  imports: [WebSocketModule],
  providers: [P2SpeechProvider, P2Capabilities],
  exports: [P2Capabilities],
})
export class P2Module {}
