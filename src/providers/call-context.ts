import type { Call } from '../core/request-context.js'
import type { UpstreamTarget } from '../upstream/upstream-client.js'

/** One attempt of a call on one channel; everything a provider may know, passed as an argument. */
export interface CallContext {
  readonly call: Call
  readonly channelId: string
  readonly target: UpstreamTarget
  /** The channel's secret, or the caller's own bearer. */
  readonly credentials: string
  /** True when `credentials` is the caller's own, so that a refused key is the caller's fault. */
  readonly callersKey: boolean
  /** The model's name at this upstream. */
  readonly upstreamModel: string
  readonly options: Readonly<Record<string, unknown>>
  /** On the performance clock; shared by all attempts of the call. */
  readonly deadlineAtMs: number
}
