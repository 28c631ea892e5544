import type { Call } from '../common/http/call.js'
import type { Logger } from '../common/observability/logger.js'
import type { ClientDialect } from '../common/realtime-dialect/client-dialect.js'
import type { UsageRecorder } from '../common/usage/usage-recorder.js'
import type { RealtimeLimits } from '../config/gateway-config.js'
import type { RealtimeTraffic } from './realtime-traffic.js'

/** Everything a session needs besides its two sockets. */
export interface RealtimeTerms {
  /** Its log gets the bytes, the summed units and, when the session failed, the failure. */
  readonly call: Call
  readonly requestId: string
  readonly clientDialect: ClientDialect
  readonly limits: RealtimeLimits
  readonly recorder: UsageRecorder
  readonly traffic: RealtimeTraffic
  readonly keyId: string
  /** As the caller named it. */
  readonly model: string
  readonly channelId: string
  /** The channel's secret, to be cut out of whatever the upstream says about it. */
  readonly credentials: string
  readonly logger: Pick<Logger, 'info' | 'warn'>
}
