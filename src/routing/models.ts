import type { ModelClass, ModelRow, ProviderName } from '../config/channel-schema.js'
import type { Capability } from '../providers/contract.js'
import type { Channel } from './channel.js'
import { BUILT_IN_MODELS } from './models.table.js'

/** Which classes of models serve a capability (specification: TTS identifiers, STT model classes, chat models). */
const CLASSES: Readonly<Record<Capability, readonly ModelClass[]>> = {
  speech: ['tts', 'tts-style'],
  transcription: ['stt-standard', 'stt-generation', 'stt-diarize'],
  translation: ['stt-standard'],
  chat: ['chat', 'chat-audio'],
  messages: ['messages'],
  realtime: ['realtime'],
  video: ['video'],
  image: ['image'],
  document: [],
}

/** The built-in rows with the operator's laid over them. */
export class ModelCatalogue {
  private readonly byId: ReadonlyMap<string, ModelRow>

  constructor(added: readonly ModelRow[]) {
    this.byId = new Map([...BUILT_IN_MODELS, ...added].map((row) => [row.id, row]))
  }

  find(model: string): ModelRow | undefined {
    return this.byId.get(model)
  }

  get rows(): IterableIterator<ModelRow> {
    return this.byId.values()
  }
}

/** What a model without a row is on upstreams that can nothing else (docs/decisions/0005); everywhere else it is `chat`. */
const UNLISTED_CLASSES: Readonly<Partial<Record<ProviderName, ModelClass>>> = {
  m1: 'messages',
  p2: 'tts',
  p3: 'tts',
  p4: 'stt-standard',
  vidgen: 'video',
  imggen: 'image',
}

/** The class a model has on a channel: its row's, or the one of the channel's provider. */
export function classOn(channel: Channel, row: ModelRow | undefined): ModelClass {
  return row?.class ?? UNLISTED_CLASSES[channel.provider] ?? 'chat'
}

export const classServes = (capability: Capability, modelClass: ModelClass): boolean =>
  CLASSES[capability].includes(modelClass)
