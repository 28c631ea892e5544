import type { Type } from '@nestjs/common'
import { AccountModule } from '../account/account.module.js'
import { AudioModule } from '../audio/audio.module.js'
import { ChatModule } from '../chat/chat.module.js'
import { type EndpointSpec, EndpointTable } from '../core/endpoint.js'
import { DocumentModule } from '../document/document.module.js'
import { ImageModule } from '../image/image.module.js'
import { MessagesModule } from '../messages/messages.module.js'
import { ModelsModule } from '../models/models.module.js'
import { RealtimeModule } from '../realtime/realtime.module.js'
import { VideoModule } from '../video/video.module.js'

/** A Nest module with the endpoints of its controllers. */
type CapabilityModule = Type<object> & { readonly endpoints: readonly EndpointSpec[] }

/** Express matches routes in this order, the busiest first. The `family` label values are listed in the same order. */
export const CAPABILITIES: readonly CapabilityModule[] = [
  ChatModule,
  MessagesModule,
  AudioModule,
  RealtimeModule,
  VideoModule,
  ImageModule,
  DocumentModule,
  ModelsModule,
  AccountModule,
]

export const ENDPOINTS = new EndpointTable(CAPABILITIES.flatMap(({ endpoints }) => endpoints))
