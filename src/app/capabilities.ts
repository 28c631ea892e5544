import type { Type } from '@nestjs/common'
import { AccountModule } from '../account/account.module.js'
import { AudioModule } from '../audio/audio.module.js'
import { ChatModule } from '../chat/chat.module.js'
import { classServes } from '../config/model-classes.js'
import { type EndpointSpec, EndpointTable } from '../core/endpoint.js'
import { DocumentModule } from '../document/document.module.js'
import { EmbeddingsModule } from '../embeddings/embeddings.module.js'
import { ImageModule } from '../image/image.module.js'
import { MessagesModule } from '../messages/messages.module.js'
import { ModelsModule } from '../models/models.module.js'
import { RealtimeModule } from '../realtime/realtime.module.js'
import { ResponsesModule } from '../responses/responses.module.js'
import { VideoModule } from '../video/video.module.js'

/** A Nest module with the endpoints of its controllers. */
type CapabilityModule = Type<object> & { readonly endpoints: readonly EndpointSpec[] }

/** Express matches routes in this order, the busiest first. The `family` label values are listed in the same order. */
export const CAPABILITIES: readonly CapabilityModule[] = [
  ChatModule,
  ResponsesModule,
  MessagesModule,
  EmbeddingsModule,
  AudioModule,
  RealtimeModule,
  VideoModule,
  ImageModule,
  DocumentModule,
  ModelsModule,
  AccountModule,
]

/** Every endpoint of the gateway. */
export const ENDPOINTS = new EndpointTable(CAPABILITIES.flatMap(({ endpoints }) => endpoints).map(billable))

/** Requests without a model are priced by a name of their own, all others by a class that they can have. */
export function billable(endpoint: EndpointSpec): EndpointSpec {
  const { name, billing, capability } = endpoint
  if (billing === 'none' || billing.model !== undefined) return endpoint
  const { usageClass } = billing
  if (usageClass !== 'document' && classServes(usageClass, capability)) return endpoint
  throw new Error(`The endpoint ${name} is billed as ${usageClass}, a class that none of its models has.`)
}
