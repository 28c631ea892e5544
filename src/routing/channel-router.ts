import { Injectable } from '@nestjs/common'
import type { ModelRow } from '../config/channel-config.js'
import { ConfigStore } from '../config/config-store.js'
import type { Caller } from '../core/caller.js'
import { GatewayError } from '../core/gateway-error.js'
import { quoted } from '../core/message-text.js'
import type { Capability, ProviderOf } from '../providers/provider-capabilities.js'
import { UpstreamClient } from '../upstream/upstream-client.js'
import { channelOrder, everyChannel } from './channel-order.js'
import { acceptsCaller, RoutingTable } from './channel-selection.js'
import type { Channel } from './channel.js'
import { ChannelHealth } from './circuit-breaker.js'
import { classOn, classServes } from './models.js'
import { ProviderRegistry } from './provider-registry.js'
import { RetryBudget } from './retry-budget.js'
import { type Candidate, ChannelRoute, RoutedCall } from './retry.js'
import { type DocumentRoute, type ListedModel, type PinnedRoute, ProviderRouter, type Route } from './router.js'

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
  ) {
    super()
    this.table = new RoutingTable(store.current, registry)
    store.onChange((next) => {
      this.table = new RoutingTable(next, registry)
      client.retain(new Set(this.table.channels.map((channel) => channel.target.poolKey)))
    })
  }

  speech(model: string, caller: Caller): Route<ProviderOf<'speech'>> {
    return this.route('speech', model, caller)
  }

  transcription(model: string, caller: Caller): Route<ProviderOf<'transcription'>> {
    return this.route('transcription', model, caller)
  }

  translation(model: string, caller: Caller): Route<ProviderOf<'translation'>> {
    return this.route('translation', model, caller)
  }

  chat(model: string, caller: Caller): Route<ProviderOf<'chat'>> {
    return this.route('chat', model, caller)
  }

  messages(model: string, caller: Caller): Route<ProviderOf<'messages'>> {
    return this.route('messages', model, caller)
  }

  realtime(model: string, caller: Caller): Route<ProviderOf<'realtime'>> {
    return this.route('realtime', model, caller)
  }

  video(model: string, caller: Caller): Route<ProviderOf<'video'>> {
    return this.route('video', model, caller)
  }

  videoChannels(caller: Caller): readonly PinnedRoute<ProviderOf<'video'>>[] {
    return this.pinnedRoutes('video', caller)
  }

  imageChannels(caller: Caller): readonly PinnedRoute<ProviderOf<'image'>>[] {
    return this.pinnedRoutes('image', caller)
  }

  document(caller: Caller): DocumentRoute | undefined {
    const able = this.table.channels.filter(({ provider }) => this.registry.find(provider).document !== undefined)
    const usable = able.filter((channel) => acceptsCaller(channel, caller))
    if (usable.length === 0 && caller.bearer !== undefined) throw keyNotAccepted()
    const [first, ...others] = channelOrder(usable, this.health).map((channel) => ({
      channel,
      provider: this.registry.find(channel.provider).document as ProviderOf<'document'>,
    }))
    if (first === undefined && able.length > 0) throw keyNotAccepted()
    if (first === undefined) return undefined
    return new RoutedCall(classOn(first.channel, undefined), '', [first, ...others], this.health, this.budget)
  }

  models(caller: Caller): readonly ListedModel[] {
    return this.table.listed(caller)
  }

  private route<C extends Capability>(capability: C, model: string, caller: Caller): Route<ProviderOf<C>> {
    if (!this.table.mayUse(caller, model)) {
      throw new GatewayError('forbidden_model', `This API key has no access to the model ${quoted(model)}.`, {
        param: 'model',
      })
    }
    const { row, own, callers } = this.table.serving(capability, model)
    const usable = caller.bearer === undefined ? own : callers
    if (usable.length === 0 && (own.length + callers.length > 0 || caller.bearer !== undefined)) throw keyNotAccepted()
    const [first, ...others] = channelOrder(usable, this.health)
    if (first === undefined) throw unknownModel(capability, model, row)
    const candidate = (channel: Channel): Candidate<ProviderOf<C>> => ({
      channel,
      provider: this.registry.find(channel.provider)[capability] as ProviderOf<C>,
    })
    return new RoutedCall(
      classOn(first, row),
      model,
      [candidate(first), ...others.map(candidate)],
      this.health,
      this.budget,
    )
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

function unknownModel(capability: Capability, model: string, row: ModelRow | undefined): GatewayError {
  const message =
    row === undefined || classServes(capability, row.class)
      ? `The model ${quoted(model)} does not exist or is not served here.`
      : `The model ${quoted(model)} does not serve ${capability} requests.`
  return new GatewayError('unknown_model', message, { param: 'model' })
}
