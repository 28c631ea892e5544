import type { ModelRow } from '../config/channel-config.js'
import type { GatewayConfig } from '../config/settings.js'
import type { Caller } from '../core/caller.js'
import { globMatcher } from '../core/model-access.js'
import type { Capability } from '../providers/provider-capabilities.js'
import { Channel } from './channel.js'
import { classOn, classServes, ModelCatalogue } from './models.js'
import type { ProviderRegistry } from './provider-registry.js'
import type { ListedModel } from './router.js'

/** Callers may make up any names that a glob matches; no more of them, and no longer ones, are remembered. */
const MAXIMUM_REMEMBERED = 1000
const LONGEST_REMEMBERED = 256

/** Who serves a model. */
export interface Serving {
  readonly row: ModelRow | undefined
  /** For callers with a key of the gateway's own. */
  readonly own: readonly Channel[]
  /** For callers whose key is the upstream's. */
  readonly callers: readonly Channel[]
}

/** What one configuration says about who serves what; never changed, replaced as a whole. */
export class RoutingTable {
  readonly channels: readonly Channel[]
  private readonly catalogue: ModelCatalogue
  private readonly remembered = new Map<Capability, Map<string, Serving>>()
  private rememberedCount = 0
  /** Access globs compiled once per caller of this configuration. */
  private readonly access = new WeakMap<readonly string[], (model: string) => boolean>()

  constructor(
    config: GatewayConfig,
    private readonly registry: ProviderRegistry,
  ) {
    this.channels = config.channels.map((channel) => new Channel(channel))
    this.catalogue = new ModelCatalogue(config.models)
  }

  /** The channels that serve a model. Every call asks, so that what was found for a name is kept. */
  serving(capability: Capability, model: string): Serving {
    const known = this.remembered.get(capability)
    const found = known?.get(model)
    if (found !== undefined) return found
    const serving = this.find(capability, model)
    const isServed = serving.own.length + serving.callers.length > 0
    if (isServed && model.length <= LONGEST_REMEMBERED && this.rememberedCount < MAXIMUM_REMEMBERED) {
      this.remembered.set(capability, (known ?? new Map<string, Serving>()).set(model, serving))
      this.rememberedCount++
    }
    return serving
  }

  mayUse({ models }: Caller, model: string): boolean {
    if (models === undefined) return true
    const known = this.access.get(models)
    if (known !== undefined) return known(model)
    const matcher = globMatcher(models)
    this.access.set(models, matcher)
    return matcher(model)
  }

  /** Every model with a name that a caller may use, in the order of names. */
  listed(caller: Caller): readonly ListedModel[] {
    const { catalogue, channels } = this
    const listed: ListedModel[] = []
    for (const row of [...catalogue.rows, ...this.rowsOfPlainGlobs()]) {
      const serving = channels.filter((channel) => this.isServed(channel, row.id, catalogue.find(row.id), caller))
      if (serving.length === 0 || !this.mayUse(caller, row.id)) continue
      listed.push({ id: row.id, class: row.class, providers: [...new Set(serving.map(({ provider }) => provider))] })
    }
    return listed.sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  private find(capability: Capability, model: string): Serving {
    const row = this.catalogue.find(model)
    const able = this.channels.filter(
      (channel) =>
        channel.serves(model, row) &&
        classServes(capability, classOn(channel, row)) &&
        this.registry.find(channel.provider)[capability] !== undefined,
    )
    return { row, own: able.filter((channel) => !wantsCallersKey(channel)), callers: able.filter(wantsCallersKey) }
  }

  private isServed(channel: Channel, model: string, row: ModelRow | undefined, caller: Caller): boolean {
    const capabilities = this.registry.find(channel.provider)
    const modelClass = classOn(channel, row)
    const capable = (Object.keys(capabilities) as Capability[]).some(
      (capability) => capabilities[capability] !== undefined && classServes(capability, modelClass),
    )
    return capable && channel.serves(model, row) && acceptsCaller(channel, caller)
  }

  /** Models that only a channel's glob without a wildcard names. */
  private rowsOfPlainGlobs(): ModelRow[] {
    const { catalogue, channels } = this
    const rows = new Map<string, ModelRow>()
    for (const channel of channels) {
      for (const id of channel.config.models ?? []) {
        if (id.includes('*') || catalogue.find(id) !== undefined) continue
        rows.set(id, { id, class: classOn(channel, undefined), providers: [channel.provider] })
      }
    }
    return [...rows.values()]
  }
}

const wantsCallersKey = ({ config }: Channel): boolean => config.credentials.kind === 'caller'

/** A key of the gateway's own is never passed on; a caller's own key is good for nothing else. */
export const acceptsCaller = (channel: Channel, caller: Caller): boolean =>
  wantsCallersKey(channel) === (caller.bearer !== undefined)
