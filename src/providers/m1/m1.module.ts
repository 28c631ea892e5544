import { Injectable, Module } from '@nestjs/common'
import { HttpModule } from '../../upstream/upstream.module.js'
import type { ProviderCapabilities } from '../provider-capabilities.js'
import { M1MessagesProvider } from './m1-messages.js'

/** M1, the one vendor family of messages-style chat. */
@Injectable()
export class M1Capabilities implements ProviderCapabilities {
  constructor(readonly messages: M1MessagesProvider) {}
}

@Module({
  imports: [HttpModule],
  providers: [M1MessagesProvider, M1Capabilities],
  exports: [M1Capabilities],
})
export class M1Module {}
