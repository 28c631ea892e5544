import type { ChannelConfig, ModelFactsSection, ModelRow } from '../config/channel-schema.js'
import { classWrites, MODEL_CLASS_NAMES, type ModelClass } from '../config/model-classes.js'
import { globMatcher } from '../core/caller.js'
import type { ProviderManifest, PublicModels } from '../providers/contract.js'
import type { UpstreamTarget } from '../upstream/upstream-client.js'

/** A configured channel made ready for routing. */
export class Channel {
  readonly id: string
  readonly provider: string
  readonly priority: number
  readonly weight: number
  readonly target: UpstreamTarget
  private readonly allows: (model: string) => boolean
  /** Entries of `models` without a wildcard. */
  private readonly named: ReadonlySet<string>

  constructor(
    readonly config: ChannelConfig,
    /** What a model without a row in the catalogue is here. */
    readonly defaultModelClass: ModelClass,
  ) {
    this.id = config.id
    this.provider = config.provider
    this.priority = config.priority
    this.weight = config.weight
    this.target = targetOf(config)
    this.allows = globMatcher(config.models)
    this.named = new Set(config.models?.filter((glob) => !glob.includes('*')))
  }

  /**
   * A model whose whole name stands in the channel's `models` is served whatever the catalogue says of its providers
   * (docs/decisions/0007). A glob serves what it matches: rows that name this provider, and models without a row.
   */
  serves(model: string, row: ModelRow | undefined): boolean {
    if (this.named.has(model)) return true
    if (row === undefined) return this.config.models !== undefined && this.allows(model)
    return row.providers.includes(this.provider) && this.allows(model)
  }

  upstreamModel(model: string): string {
    const { modelMap } = this.config
    return Object.hasOwn(modelMap, model) ? (modelMap[model] ?? model) : model
  }
}

function targetOf({ id, baseUrl, timeouts }: ChannelConfig): UpstreamTarget {
  const url = new URL(baseUrl.replace(/^ws/, 'http'))
  const pathPrefix = url.pathname.replace(/\/+$/, '')
  return { poolKey: `${id} ${url.origin} ${timeouts.connectMs}`, origin: url.origin, pathPrefix, timeouts }
}

type ModelsOfProvider = Pick<ProviderManifest, 'name' | 'models' | 'reasoningModels' | 'modelFacts'>

const rowsOf = ({ name, models, reasoningModels = [], modelFacts = {} }: ModelsOfProvider): ModelRow[] =>
  MODEL_CLASS_NAMES.flatMap((modelClass) =>
    datedIds(models[modelClass] ?? []).map(([id, createdAt]) => ({
      id,
      class: modelClass,
      providers: [name],
      ...(classWrites(modelClass) ? { reasons: reasoningModels.includes(id) } : {}),
      ...(modelFacts[id] === undefined ? {} : { facts: modelFacts[id] }),
      ...(createdAt === null ? {} : { createdAt }),
    })),
  )

const datedIds = (models: PublicModels): readonly (readonly [string, string | null])[] =>
  isList(models) ? models.map((id) => [id, null]) : Object.entries(models)

/** `Array.isArray` does not know read-only arrays. */
const isList = (models: PublicModels): models is readonly string[] => Array.isArray(models)

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
    const byId = new Map(builtIn.map((row) => [row.id, row]))
    for (const row of added) byId.set(row.id, completed(row, byId.get(row.id)))
    this.byId = byId
  }

  find(model: string): ModelRow | undefined {
    return this.byId.get(model)
  }

  get rows(): IterableIterator<ModelRow> {
    return this.byId.values()
  }
}

/** How a model thinks, and what translations to it depend on, is as the catalogue says where an operator's row does not say it. */
function completed(row: ModelRow, known: ModelRow | undefined): ModelRow {
  const reasons = row.reasons ?? known?.reasons
  return {
    ...row,
    ...(reasons === undefined ? {} : { reasons }),
    ...(known?.facts === undefined ? {} : { facts: { ...factsBeneath(row, known), ...row.facts } }),
  }
}

/**
 * The catalogue's facts, but for thinking that a `reasons` of the operator contradicts. One that repeats the catalogue's says nothing
 * new: there are models that think without taking an effort, and models that take one and think only then.
 */
function factsBeneath({ reasons }: ModelRow, known: ModelRow): ModelFactsSection | undefined {
  const { facts } = known
  if (reasons === undefined || reasons === known.reasons) return facts
  if (reasons && facts?.thinking === 'none') return { ...facts, thinking: 'adaptive' }
  if (!reasons && facts?.thinking === 'adaptive') return { ...facts, thinking: 'none' }
  return facts
}

/** The class a model has on a channel: its row's, or the one of the channel's provider. */
export const classOn = (channel: Channel, row: ModelRow | undefined): ModelClass =>
  row?.class ?? channel.defaultModelClass
