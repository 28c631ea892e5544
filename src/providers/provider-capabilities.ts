import type { ChatProvider } from './chat.contract.js'
import type { DocumentProvider } from './contract.js'
import type { ImageProvider } from './image.contract.js'
import type { MessagesProvider } from './messages.contract.js'
import type { RealtimeProvider } from './realtime.contract.js'
import type { SpeechProvider } from './speech.contract.js'
import type { TranscriptionProvider, TranslationProvider } from './transcription.contract.js'
import type { VideoProvider } from './video.contract.js'

/** What an upstream can do. An absent member is an absent capability; there is no method that only refuses. */
export interface ProviderCapabilities {
  readonly speech?: SpeechProvider
  readonly transcription?: TranscriptionProvider
  readonly translation?: TranslationProvider
  readonly chat?: ChatProvider
  readonly messages?: MessagesProvider
  readonly realtime?: RealtimeProvider
  readonly video?: VideoProvider
  readonly image?: ImageProvider
  readonly document?: DocumentProvider
}

export type Capability = keyof ProviderCapabilities
export type ProviderOf<C extends Capability> = NonNullable<ProviderCapabilities[C]>
