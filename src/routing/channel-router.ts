import { Injectable } from '@nestjs/common'
import type { ModelRow } from '../config/channel-schema.js'
import { classServes, isWritingDialect, type ModelCapability, type WritingDialect } from '../config/model-classes.js'
import { ConfigStore } from '../config/config-store.js'
import type { Caller } from '../core/caller.js'
import { GatewayError, quoted } from '../core/errors.js'
import { Metrics, type Reading, registerGauge } from '../observability/metrics.js'
import type { Capability, ProviderOf, RoutedProviderOf } from '../providers/contract.js'
import { UpstreamClient } from '../upstream/upstream-client.js'
import {
  acceptsCaller,
  channelOrder,
  everyChannel,
  isServed,
  ProviderRegistry,
  RoutingTable,
  type Serving,
} from './channel-selection.js'
import { type Channel, classOn } from './channel.js'
import { capabilitiesOf } from './channel-dialects.js'
import { type BreakerState, ChannelHealth, type ChannelSnapshot } from './circuit-breaker.js'
import { type Candidate, ChannelRoute, RetryBudget, RoutedRequest } from './retry.js'
import {
  type DocumentRoute,
  type ListedModel,
  type PinnedRoute,
  ProviderRouter,
  type Route,
  type TranscriptionModel,
} from './router.js'
import { Translations } from './translations.js'

const BREAKER_NUMBERS: Readonly<Record<BreakerState, number>> = { closed: 0, half_open: 1, open: 2 }

/** How each channel of the configuration does, as this process sees it. */
@Injectable()
export class ChannelMetrics {
  constructor(
    private readonly health: ChannelHealth,
    metrics: Metrics,
  ) {
    const labelNames = ['channel']
    const breaker = { name: 'gateway_breaker_state', help: 'Breaker: 0 closed, 1 half open, 2 open.', labelNames }
    registerGauge(metrics, { ...breaker, aggregator: 'max' }, () => this.read(({ state }) => BREAKER_NUMBERS[state]))
    const waiting = { name: 'gateway_channel_waiting', help: 'Calls that wait for an answer to begin.', labelNames }
    registerGauge(metrics, waiting, () => this.read((channel) => channel.waiting))
    const latency = {
      name: 'gateway_channel_latency_seconds',
      help: 'Until answers begin, or calls fail that waited longer, on average; not shown after seconds without either.',
      labelNames,
    }
    registerGauge(metrics, { ...latency, aggregator: 'average' }, () =>
      this.read(({ latencyMs }) => (latencyMs === undefined ? undefined : latencyMs / 1000)),
    )
  }

  private read(valueOf: (channel: ChannelSnapshot) => number | undefined): readonly Reading[] {
    return this.health.snapshot().flatMap((channel) => {
      const value = valueOf(channel)
      return value === undefined ? [] : [{ labels: { channel: channel.channelId }, value }]
    })
  }
}

/** Routes by the model catalogue and the channels of the current configuration; rebuilt at once on reload. */
@Injectable()
export class ChannelRouter extends ProviderRouter {
  private table: RoutingTable

  constructor(
    store: ConfigStore,
    client: UpstreamClient,
    private readonly registry: ProviderRegistry,
    private readonly health: ChannelHealth,
    private readonly budget: RetryBudget,
    private readonly translations: Translations,
  ) {
    super()
    this.table = new RoutingTable(store.current, registry)
    store.onChange((next) => {
      this.table = new RoutingTable(next, registry)
      client.retain(new Set(this.table.channels.map((channel) => channel.target.poolKey)))
    })
  }

  route<C extends ModelCapability>(
    capability: C,
    model: string,
    caller: Caller,
    channelId?: string,
  ): Route<RoutedProviderOf<C>> {
    if (!this.table.mayUse(caller, model)) throw forbiddenModel(model)
    const serving = this.table.serving(capability, model)
    const { row } = serving
    const candidates = this.candidatesFor<C>(capability, serving, caller)
    const [first, ...others] =
      channelId === undefined ? candidates : candidates.filter(({ channel }) => channel.id === channelId)
    if (first === undefined && candidates.length > 0) throw servedElsewhere(model)
    if (first === undefined) throw this.unknownModel(capability, model, row, caller)
    return new RoutedRequest(
      // A session is one of the realtime endpoint, whatever transcribes in it.
      capability === 'realtime_transcription' ? 'realtime' : classOn(first.channel, row),
      model,
      [first, ...others],
      this.health,
      this.budget,
      isWritingDialect(capability) ? row?.reasons : false,
    )
  }

  transcriptionWithoutModel(caller: Caller): Route<ProviderOf<'realtime_transcription'>> {
    if (!this.table.mayTranscribe(caller)) {
      throw new GatewayError('forbidden_model', 'This API key has no access to any model that transcribes.')
    }
    const [first, ...others] = this.candidatesFor('realtime_transcription', this.table.transcribing(caller), caller)
    if (first === undefined) {
      throw new GatewayError('unknown_model', 'No channel serves realtime transcription sessions.')
    }
    return new RoutedRequest('realtime', '', [first, ...others], this.health, this.budget, false)
  }

  transcriptionModel(channelId: string, model: string): TranscriptionModel {
    return this.table.transcriptionModel(channelId, model)
  }

  videoChannels(caller: Caller): readonly PinnedRoute<ProviderOf<'video'>>[] {
    return this.pinnedRoutes('video', caller)
  }

  responseChannels(caller: Caller): readonly PinnedRoute<ProviderOf<'responses'>>[] {
    return this.pinnedRoutes('responses', caller)
  }

  imageChannels(caller: Caller): readonly PinnedRoute<ProviderOf<'image'>>[] {
    return this.pinnedRoutes('image', caller)
  }

  document(caller: Caller): DocumentRoute | undefined {
    const able = this.table.channels.filter(({ provider }) => this.registry.find(provider).document !== undefined)
    const usable = able.filter((channel) => acceptsCaller(channel, caller))
    if (usable.length === 0 && caller.bearer !== undefined) throw keyNotAccepted()
    const [first, ...others] = this.candidates('document', usable)
    if (first === undefined && able.length > 0) throw keyNotAccepted()
    if (first === undefined) return undefined
    return new RoutedRequest(classOn(first.channel, undefined), '', [first, ...others], this.health, this.budget, false)
  }

  models(caller: Caller): readonly ListedModel[] {
    return this.table.listed(caller)
  }

  /** Throws `unauthorized` where only channels that the caller's key is not for would serve it. */
  private candidatesFor<C extends Capability>(
    capability: C,
    { row, own, callers }: Serving,
    caller: Caller,
  ): readonly Candidate<RoutedProviderOf<C>>[] {
    const usable = caller.bearer === undefined ? own : callers
    const isServedToOthers = isServed(own) || isServed(callers) || caller.bearer !== undefined
    if (!isServed(usable) && isServedToOthers) throw keyNotAccepted()
    const native = this.candidates(capability, usable.native)
    if (usable.translated.size === 0 || !isWritingDialect(capability)) return native
    return [...native, ...this.translatedCandidates(capability, usable.translated, row, caller)]
  }

  /** Behind those whose upstreams speak the caller's dialect: a translation is tried only where none of these is left. */
  private translatedCandidates<Dialect extends WritingDialect>(
    client: Dialect,
    channels: ReadonlyMap<Channel, WritingDialect>,
    row: ModelRow | undefined,
    caller: Caller,
  ): readonly Candidate<RoutedProviderOf<Dialect>>[] {
    return channelOrder([...channels.keys()], this.health).flatMap((channel) => {
      const upstream = channels.get(channel)
      if (upstream === undefined) return []
      const capabilities = this.registry.find(channel.provider)
      const provider = this.translations.providerFor({ client, upstream }, capabilities, { channel, row }, caller)
      return provider === undefined ? [] : [{ channel, provider, over: upstream }]
    })
  }

  private candidates<C extends Capability>(
    capability: C,
    usable: readonly Channel[],
  ): readonly Candidate<RoutedProviderOf<C>>[] {
    return channelOrder(usable, this.health).map((channel) => ({
      channel,
      provider: this.registry.find(channel.provider)[capability] as RoutedProviderOf<C>,
    }))
  }

  private unknownModel(
    capability: ModelCapability,
    model: string,
    row: ModelRow | undefined,
    caller: Caller,
  ): GatewayError {
    const isOther = row !== undefined && !capabilitiesOf(row.class, row).includes(capability)
    const problem = isOther
      ? `The model ${quoted(model)} does not serve ${capability.replace('_', ' ')} requests.${this.hint(capability, row, caller)}`
      : `The model ${quoted(model)} does not exist or is not served here.`
    const nearest = this.table.nearest(capability, model, caller)
    const guess = nearest === undefined ? '' : ` Did you mean ${quoted(nearest)}?`
    return new GatewayError('unknown_model', `${problem}${guess} ${OTHER_MODELS}`, { param: 'model' })
  }

  /** How a model that is not asked so may be asked all the same; begins with a space, or is empty. */
  private hint(capability: ModelCapability, { id, class: modelClass }: ModelRow, caller: Caller): string {
    if (capability === 'realtime' && classServes(modelClass, 'realtime_transcription'))
      return " Open a transcription session with 'intent=transcription' in the query."
    return this.table.couldTranslate(capability, id, caller)
      ? ' The operator can have it translated by dialects.translate in the configuration.'
      : ''
  }

  private pinnedRoutes<C extends Capability>(capability: C, caller: Caller): readonly PinnedRoute<ProviderOf<C>>[] {
    const able = this.table.channels.filter(
      (channel) => this.registry.find(channel.provider)[capability] !== undefined && acceptsCaller(channel, caller),
    )
    return everyChannel(able, this.health).map(
      (channel) =>
        new ChannelRoute(
          channel,
          this.registry.find(channel.provider)[capability] as ProviderOf<C>,
          this.health,
          this.budget,
        ),
    )
  }
}

const keyNotAccepted = (): GatewayError => new GatewayError('unauthorized', 'The API key is not valid for this model.')

const forbiddenModel = (model: string): GatewayError =>
  new GatewayError('forbidden_model', `This API key has no access to the model ${quoted(model)}.`, { param: 'model' })

const servedElsewhere = (model: string): GatewayError =>
  new GatewayError(
    'invalid_request',
    `The model ${quoted(model)} is not served by the channel that keeps what the request refers to.`,
    { param: 'model', code: 'unsupported_value' },
  )

/** Added to the refusal: where served models are listed, and which settings serve others. */
const OTHER_MODELS =
  'GET /v1/models lists the models that are served. The operator serves others by channels[].models (a name, or a glob ' +
  'such as gpt-*) or a row in models of the configuration.'
