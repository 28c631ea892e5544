import { MODEL_CLASSES, type ModelClass, type ModelRow } from '../config/channel-schema.js'
import type { Capability, ProviderManifest } from '../providers/contract.js'
import type { Channel } from './channel.js'

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

/** The rows of all manifests: one for a model of several providers, which names them all. */
export function builtInModels(manifests: readonly Pick<ProviderManifest, 'name' | 'models'>[]): readonly ModelRow[] {
  const rows = new Map<string, ModelRow>()
  for (const { name, models } of manifests) {
    for (const modelClass of MODEL_CLASSES) {
      for (const id of models[modelClass] ?? []) {
        const { class: known = modelClass, providers = [] } = rows.get(id) ?? {}
        if (known !== modelClass)
          throw new Error(`The model ${id} is ${modelClass} on ${name}, but ${known} elsewhere.`)
        rows.set(id, { id, class: modelClass, providers: [...providers, name] })
      }
    }
  }
  return [...rows.values()]
}

/** The built-in rows with the operator's laid over them: a row of the operator replaces the built-in one of its id. */
export class ModelCatalogue {
  private readonly byId: ReadonlyMap<string, ModelRow>

  constructor(builtIn: readonly ModelRow[], added: readonly ModelRow[]) {
    this.byId = new Map([...builtIn, ...added].map((row) => [row.id, row]))
  }

  find(model: string): ModelRow | undefined {
    return this.byId.get(model)
  }

  get rows(): IterableIterator<ModelRow> {
    return this.byId.values()
  }
}

/** The class a model has on a channel: its row's, or the one of the channel's provider. */
export const classOn = (channel: Channel, row: ModelRow | undefined): ModelClass =>
  row?.class ?? channel.defaultModelClass

export const classServes = (capability: Capability, modelClass: ModelClass): boolean =>
  CLASSES[capability].includes(modelClass)
