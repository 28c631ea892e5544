import type { ChannelConfig, ModelRow } from '../config/channel-schema.js'
import type { ModelClass } from '../config/model-classes.js'
import { globMatcher } from '../core/caller.js'
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
