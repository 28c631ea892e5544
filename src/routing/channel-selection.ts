import type { ModelRow } from '../config/channel-schema.js'
import {
  classServes,
  classWrites,
  isWritingDialect,
  type ModelCapability,
  type ModelClass,
  WRITING_DIALECTS,
  type WritingDialect,
} from '../config/model-classes.js'
import { nearestName } from '../config/nearest-name.js'
import type { GatewayConfig } from '../config/settings.js'
import { type Caller, globMatcher } from '../core/caller.js'
import type { Capability, ModelOffer, ProviderCapabilities, ProviderManifest } from '../providers/contract.js'
import { builtInModels, Channel, classOn, ModelCatalogue } from './channel.js'
import { capabilitiesOn, servedOver } from './channel-dialects.js'
import type { ChannelHealth } from './circuit-breaker.js'
import type { ListedModel, TranscriptionModel } from './router.js'

/** The draw is overruled where another channel of the same priority would answer in less than half the time. */
const CLEARLY_SLOWER = 2

type Health = Pick<ChannelHealth, 'stateOf' | 'openUntilMs' | 'expectedWaitMs' | 'leastWaitMs'>

/**
 * The channels that may be tried, best first: lower priority first, and within one priority a draw by weight, unless the
 * channel drawn is clearly slower than another of them. Those whose breaker is open are left out while there are others; when
 * there are none, the one that opens soonest is tried first: it may work. `random` yields numbers in [0, 1).
 */
export function channelOrder(
  channels: readonly Channel[],
  health: Health,
  random: () => number = Math.random,
): readonly Channel[] {
  if (channels.length < 2) return channels
  const usable = channels.filter(({ id }) => health.stateOf(id) !== 'open')
  if (usable.length === 0) return soonestFirst(channels, health)
  return withoutSlowLead(drawn(usable, random), health)
}

/** Every channel, those that are spared last: for what only one of them can know. */
export function everyChannel(channels: readonly Channel[], health: Health): readonly Channel[] {
  const order = channelOrder(channels, health)
  return [...order, ...channels.filter((channel) => !order.includes(channel))]
}

function drawn(channels: readonly Channel[], random: () => number): Channel[] {
  // Exponential draws by weight (Efraimidis and Spirakis): sorting by them is a draw without replacement.
  return channels
    .map((channel) => ({ channel, draw: -Math.log(1 - random()) / channel.weight }))
    .sort((a, b) => a.channel.priority - b.channel.priority || a.draw - b.draw)
    .map(({ channel }) => channel)
}

function withoutSlowLead(order: Channel[], health: Health): Channel[] {
  const [drawnFirst] = order
  // One call probes what has cooled down, however long others have been waiting there.
  if (drawnFirst === undefined || health.stateOf(drawnFirst.id) === 'half_open') return order
  let lead = drawnFirst
  for (const channel of order) {
    if (channel.priority !== lead.priority) break
    if (channel !== lead && isClearlySlower(lead, channel, health)) lead = channel
  }
  return lead === drawnFirst ? order : [lead, ...order.filter((channel) => channel !== lead)]
}

/**
 * Whether one is slower than another that is known; of the one it is enough to know that it keeps calls waiting. Each
 * is meant to carry what its weight says, and is not slower for that.
 */
function isClearlySlower(one: Channel, other: Channel, health: Health): boolean {
  const evenWeight = (one.weight + other.weight) / 2
  const otherMs = health.expectedWaitMs(other.id, other.weight / evenWeight)
  return otherMs !== undefined && health.leastWaitMs(one.id, one.weight / evenWeight) > CLEARLY_SLOWER * otherMs
}

const soonestFirst = (channels: readonly Channel[], health: Health): readonly Channel[] =>
  [...channels].sort((a, b) => health.openUntilMs(a.id) - health.openUntilMs(b.id) || a.priority - b.priority)

/** The upstreams this build speaks to, by the name channels use for them. */
export class ProviderRegistry {
  /** The built-in catalogue. */
  readonly models: readonly ModelRow[]
  private readonly byName: ReadonlyMap<string, ProviderManifest>

  /** `capabilities` are the instances of the manifests' classes, by the provider's name. */
  constructor(
    manifests: readonly ProviderManifest[],
    private readonly capabilities: Readonly<Record<string, ProviderCapabilities>>,
  ) {
    this.byName = new Map(manifests.map((manifest) => [manifest.name, manifest]))
    this.models = builtInModels(manifests)
  }

  find(name: string): ProviderCapabilities {
    return this.capabilities[name] ?? {}
  }

  defaultModelClass(name: string): ModelClass {
    return this.byName.get(name)?.defaultModelClass ?? 'chat'
  }

  offer(name: string, modelClass: ModelClass): ModelOffer {
    return this.byName.get(name)?.offers?.[modelClass] ?? {}
  }
}

/** Callers may make up any names that a glob matches; no more of them, and no longer ones, are remembered. */
const MAXIMUM_REMEMBERED = 1000
const LONGEST_REMEMBERED = 256

/** Channels that serve a model. */
export interface ServingChannels {
  /** Their upstreams speak the dialect of the endpoint. */
  readonly native: readonly Channel[]
  /** With the dialect to translate to. */
  readonly translated: ReadonlyMap<Channel, WritingDialect>
}

/** Who serves a model. */
export interface Serving {
  readonly row: ModelRow | undefined
  /** For callers with a key of the gateway's own. */
  readonly own: ServingChannels
  /** For callers whose key is the upstream's. */
  readonly callers: ServingChannels
}

export const isServed = ({ native, translated }: ServingChannels): boolean => native.length + translated.size > 0

/** What one configuration says about who serves what; never changed, replaced as a whole. */
export class RoutingTable {
  readonly channels: readonly Channel[]
  private readonly catalogue: ModelCatalogue
  /** Of the catalogue, and of models that only a channel names. */
  private readonly rows: readonly ModelRow[]
  private readonly names = new Map<Capability, readonly string[]>()
  private readonly remembered = new Map<Capability, Map<string, Serving>>()
  private rememberedCount = 0
  /** Access globs compiled once per caller of this configuration. */
  private readonly access = new WeakMap<readonly string[], (model: string) => boolean>()
  private readonly translate: GatewayConfig['dialects']['translate']

  constructor(
    config: GatewayConfig,
    private readonly registry: ProviderRegistry,
  ) {
    this.translate = config.dialects.translate
    this.channels = config.channels.map((channel) => new Channel(channel, registry.defaultModelClass(channel.provider)))
    this.catalogue = new ModelCatalogue(registry.models, config.models)
    this.rows = [...this.catalogue.rows, ...this.rowsOfPlainGlobs()]
  }

  /** The channels that serve a model. Every call asks, so that what was found for a name is kept. */
  serving(capability: Capability, model: string): Serving {
    const known = this.remembered.get(capability)
    const found = known?.get(model)
    if (found !== undefined) return found
    const serving = this.find(capability, model)
    if (
      (isServed(serving.own) || isServed(serving.callers)) &&
      model.length <= LONGEST_REMEMBERED &&
      this.rememberedCount < MAXIMUM_REMEMBERED
    ) {
      this.remembered.set(capability, (known ?? new Map<string, Serving>()).set(model, serving))
      this.rememberedCount++
    }
    return serving
  }

  /**
   * The channels that open transcription sessions without a model: those that serve some model which transcribes and which the caller
   * may use; of these the ones that serve conversations as well, where there are such, as only they are sure to have realtime sockets.
   */
  transcribing(caller: Caller): Serving {
    const usable = this.channels.filter(
      (channel) =>
        this.registry.find(channel.provider).realtime_transcription !== undefined &&
        this.rows.some((row) => transcribes(row) && channel.serves(row.id, row) && this.mayUse(caller, row.id)),
    )
    const conversing = usable.filter((channel) =>
      this.rows.some((row) => row.class === 'realtime' && channel.serves(row.id, row)),
    )
    return servingOf(undefined, conversing.length > 0 ? conversing : usable, new Map())
  }

  transcriptionModel(channelId: string, model: string): TranscriptionModel {
    const channel = this.channels.find(({ id }) => id === channelId)
    const row = this.catalogue.find(model) ?? this.catalogue.find(channel?.upstreamModel(model) ?? model)
    const modelClass = row?.class
    if (channel === undefined) return { isServed: false, modelClass }
    // A name that the operator maps is one of the channel's own; what it stands for need not be known.
    const isMapped = Object.hasOwn(channel.config.modelMap, model)
    const isServed = isMapped || channel.serves(model, row)
    return { isServed: isServed && (row === undefined ? isMapped : transcribes(row)), modelClass }
  }

  /** Whether some model that transcribes is open to the caller, wherever it is served. */
  mayTranscribe(caller: Caller): boolean {
    return this.rows.some((row) => transcribes(row) && this.mayUse(caller, row.id))
  }

  mayUse({ models }: Caller, model: string): boolean {
    if (models === undefined) return true
    const known = this.access.get(models)
    if (known !== undefined) return known(model)
    const matcher = globMatcher(models)
    this.access.set(models, matcher)
    return matcher(model)
  }

  /** A model that was probably meant by a name that is not known; only of those that the caller may use. */
  nearest(capability: Capability, model: string, caller: Caller): string | undefined {
    const isUsable = (name: string): boolean => {
      const { own, callers } = this.serving(capability, name)
      return isServed(caller.bearer === undefined ? own : callers) && this.mayUse(caller, name)
    }
    return nearestName(model, this.namesOf(capability), { isUsable })
  }

  /** Whether a model would be served if the operator had all channels translate that do not say otherwise. */
  couldTranslate(capability: Capability, model: string, { bearer }: Caller): boolean {
    const { own, callers } = this.find(capability, model, 'on')
    return isServed(bearer === undefined ? own : callers)
  }

  private namesOf(capability: Capability): readonly string[] {
    const known = this.names.get(capability)
    if (known !== undefined) return known
    const isMeant = isWritingDialect(capability)
      ? classWrites
      : (modelClass: ModelClass): boolean => classServes(modelClass, capability)
    const names = this.rows.filter((row) => isMeant(row.class)).map(({ id }) => id)
    this.names.set(capability, names)
    return names
  }

  /** Every model with a name that a caller may use, in the order of names. */
  listed(caller: Caller): readonly ListedModel[] {
    const listed: ListedModel[] = []
    for (const { id, class: modelClass, createdAt } of this.rows) {
      if (!this.mayUse(caller, id)) continue
      const row = this.catalogue.find(id)
      const serving = this.channels.filter(
        (channel) =>
          channel.serves(id, row) && acceptsCaller(channel, caller) && this.capabilitiesOf(channel, row).length > 0,
      )
      if (serving.length === 0) continue
      const capabilities = [...new Set(serving.flatMap((channel) => this.capabilitiesOf(channel, row)))]
      const providers = [...new Set(serving.map(({ provider }) => provider))]
      const offer = this.offerOf(modelClass, serving)
      const dialects = classWrites(modelClass) ? this.dialectsOf(id, caller) : undefined
      listed.push({
        id,
        class: modelClass,
        capabilities,
        providers,
        offer,
        ...(dialects === undefined ? {} : { dialects }),
        ...(createdAt === undefined ? {} : { createdAt }),
      })
    }
    return listed.sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  private capabilitiesOf(channel: Channel, row: ModelRow | undefined): readonly ModelCapability[] {
    return capabilitiesOn(channel, row, this.registry.find(channel.provider))
  }

  /** undefined where all that are served are the upstream's own. Lists do not fill what is remembered for calls. */
  private dialectsOf(id: string, { bearer }: Caller): readonly WritingDialect[] | undefined {
    const servings = WRITING_DIALECTS.map((dialect) => {
      const { own, callers } = this.find(dialect, id)
      return [dialect, bearer === undefined ? own : callers] as const
    })
    if (servings.every(([, { translated }]) => translated.size === 0)) return undefined
    return servings.filter(([, channels]) => isServed(channels)).map(([dialect]) => dialect)
  }

  /** Of all channels that serve it, as a client does not choose the channel; with the voices that a channel's options name. */
  private offerOf(modelClass: ModelClass, serving: readonly Channel[]): ModelOffer {
    const offers = serving.map(({ provider }) => this.registry.offer(provider, modelClass))
    const named = serving.map(({ config }) => Object.keys((config.options['voices'] as object | undefined) ?? {}))
    const voices = new Set([...offers.flatMap((offer) => offer.voices ?? []), ...named.flat()])
    const formats = new Set(offers.flatMap((offer) => offer.formats ?? []))
    return {
      ...(voices.size === 0 ? {} : { voices: [...voices] }),
      ...(formats.size === 0 ? {} : { formats: [...formats] }),
    }
  }

  private find(capability: Capability, model: string, translate = this.translate): Serving {
    const row = this.catalogue.find(model)
    const native: Channel[] = []
    const translated = new Map<Channel, WritingDialect>()
    for (const channel of this.channels) {
      if (!channel.serves(model, row)) continue
      const own = this.capabilitiesOf(channel, row)
      const over = servedOver(capability, channel, row, { own, translate })
      if (over === 'native') native.push(channel)
      else if (over !== undefined) translated.set(channel, over)
    }
    return servingOf(row, native, translated)
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

/** Of itself: a model of conversations only stands in the query. */
const transcribes = ({ class: modelClass }: ModelRow): boolean =>
  modelClass !== 'realtime' && classServes(modelClass, 'realtime_transcription')

function servingOf(
  row: ModelRow | undefined,
  native: readonly Channel[],
  translated: ReadonlyMap<Channel, WritingDialect>,
): Serving {
  const those = (isMeant: (channel: Channel) => boolean): ServingChannels => ({
    native: native.filter(isMeant),
    translated: new Map([...translated].filter(([channel]) => isMeant(channel))),
  })
  return { row, own: those((channel) => !wantsCallersKey(channel)), callers: those(wantsCallersKey) }
}

const wantsCallersKey = ({ config }: Channel): boolean => config.credentials.kind === 'caller'

/** A key of the gateway's own is never passed on; a caller's own key is good for nothing else. */
export const acceptsCaller = (channel: Channel, caller: Caller): boolean =>
  wantsCallersKey(channel) === (caller.bearer !== undefined)
