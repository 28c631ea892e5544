import type { ProviderName } from '../config/channel-config.js'
import type { ProviderCapabilities } from '../providers/provider-capabilities.js'

/** The upstreams this build speaks to, by the name channels use for them. */
export class ProviderRegistry {
  constructor(private readonly providers: Readonly<Partial<Record<ProviderName, ProviderCapabilities>>>) {}

  find(name: ProviderName): ProviderCapabilities {
    return this.providers[name] ?? {}
  }
}
