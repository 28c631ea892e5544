import type { ModelClass, ModelRow } from '../../config/gateway-config.js'
import type { Capability } from '../contracts/provider-capabilities.js'
import type { Channel } from './channel.js'
import { BUILT_IN_MODELS } from './models.table.js'

/** Which classes of models serve a capability (specification: TTS identifiers, STT model classes, chat models). */
const CLASSES: Readonly<Record<Capability, readonly ModelClass[]>> = {
  speech: ['tts', 'tts-style'],
  transcription: ['stt-standard', 'stt-generation', 'stt-diarize'],
  translation: ['stt-standard'],
  chat: ['chat', 'chat-audio'],
  messages: ['messages'],
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

/**
 * The class a model has on a channel. One that no row names is `chat`, except on a channel whose upstream only speaks
 * the messages dialect: there it can be nothing else.
 */
export function classOn(channel: Channel, row: ModelRow | undefined): ModelClass {
  return row?.class ?? (channel.provider === 'm1' ? 'messages' : 'chat')
}

export const classServes = (capability: Capability, modelClass: ModelClass): boolean =>
  CLASSES[capability].includes(modelClass)
