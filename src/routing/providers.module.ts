import { type DynamicModule, Module, type Type } from '@nestjs/common'
import type { ProviderCapabilities, ProviderManifest } from '../providers/contract.js'
import { HttpModule, WebSocketModule } from '../upstream/upstream.module.js'
import { ChannelMetrics, ChannelRouter } from './channel-router.js'
import { ProviderRegistry } from './channel-selection.js'
import { ChannelHealth } from './circuit-breaker.js'
import { JsonRelayService } from './json-relay.service.js'
import { assertManifestsAgree } from './channel.js'
import { RetryBudget } from './retry.js'
import { ChannelReports, ProviderRouter } from './router.js'
import { Translations } from './translations.js'
import { UnknownUpstreamWords } from './unknown-words.js'

/** Gives every module the one token behind which all upstreams stand: `ProviderRouter`. */
@Module({})
export class ProvidersModule {
  static forManifests(manifests: readonly ProviderManifest[]): DynamicModule {
    // Before Nest builds anything: it would end the process without a word for what a factory throws.
    assertManifestsAgree(manifests)
    const classes = [...new Set(manifests.flatMap(({ capabilities }) => Object.values<Type<object>>(capabilities)))]
    return {
      module: this,
      global: true,
      imports: [HttpModule, WebSocketModule],
      providers: [
        ChannelHealth,
        ChannelMetrics,
        JsonRelayService,
        RetryBudget,
        Translations,
        UnknownUpstreamWords,
        ...classes,
        ...manifests.flatMap(({ injectables = [] }) => injectables),
        {
          provide: ProviderRegistry,
          inject: classes,
          useFactory: (...instances: object[]) =>
            new ProviderRegistry(manifests, capabilitiesOf(manifests, classes, instances)),
        },
        { provide: ProviderRouter, useClass: ChannelRouter },
        { provide: ChannelReports, useExisting: ChannelHealth },
      ],
      exports: [ProviderRouter, ChannelReports, JsonRelayService],
    }
  }
}

/** The instances of each manifest's classes, by its name; `instances` come in the order of `classes`. */
function capabilitiesOf(
  manifests: readonly ProviderManifest[],
  classes: readonly Type<object>[],
  instances: readonly object[],
): Readonly<Record<string, ProviderCapabilities>> {
  const instanceOf = new Map(classes.map((type, index) => [type, instances[index]]))
  return Object.fromEntries(
    manifests.map(({ name, capabilities }) => {
      const entries = Object.entries<Type<object>>(capabilities)
      return [name, Object.fromEntries(entries.map(([capability, type]) => [capability, instanceOf.get(type)]))]
    }),
  )
}
