import type { ModelRow } from '../config/channel-schema.js'
import { MODEL_CLASS_NAMES, type ModelClass } from '../config/model-classes.js'
import type { ProviderManifest } from '../providers/contract.js'
import type { Channel } from './channel.js'

type ModelsOfProvider = Pick<ProviderManifest, 'name' | 'models'>

const rowsOf = ({ name, models }: ModelsOfProvider): ModelRow[] =>
  MODEL_CLASS_NAMES.flatMap((modelClass) =>
    (models[modelClass] ?? []).map((id) => ({ id, class: modelClass, providers: [name] })),
  )

/** Throws for manifests that contradict each other: two of one name, or one model of two classes. */
export function assertManifestsAgree(manifests: readonly ModelsOfProvider[]): void {
  const names = new Set<string>()
  const rows = new Map<string, ModelRow>()
  for (const manifest of manifests) {
    if (names.has(manifest.name)) throw new Error(`Two providers are called ${manifest.name}.`)
    names.add(manifest.name)
    for (const row of rowsOf(manifest)) {
      const known = rows.get(row.id) ?? row
      if (known.class !== row.class)
        throw new Error(
          `${row.id} is ${known.class} on ${known.providers.join()}, but ${row.class} on ${manifest.name}.`,
        )
      rows.set(row.id, known)
    }
  }
}

/** The rows of all manifests: one for a model of several providers, which names them all. */
export function builtInModels(manifests: readonly ModelsOfProvider[]): readonly ModelRow[] {
  const rows = new Map<string, ModelRow>()
  for (const row of manifests.flatMap(rowsOf)) {
    const providers = rows.get(row.id)?.providers ?? []
    rows.set(row.id, { ...row, providers: [...providers, ...row.providers] })
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
