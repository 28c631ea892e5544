import { globMatcher } from '../../common/auth/model-access.js'
import type { UpstreamTarget } from '../../common/http/upstream-client.js'
import type { ChannelConfig, ModelRow, ProviderName } from '../../config/gateway-config.js'

/** A configured channel made ready for routing. */
export class Channel {
  readonly id: string
  readonly provider: ProviderName
  readonly priority: number
  readonly weight: number
  readonly target: UpstreamTarget
  private readonly allows: (model: string) => boolean

  constructor(readonly config: ChannelConfig) {
    this.id = config.id
    this.provider = config.provider
    this.priority = config.priority
    this.weight = config.weight
    this.target = targetOf(config)
    this.allows = globMatcher(config.models)
  }

  /** A catalogue row names its providers; a model without a row is served where a glob of the operator names it. */
  serves(model: string, row: ModelRow | undefined): boolean {
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
