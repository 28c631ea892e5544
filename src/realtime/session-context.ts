import type { RealtimeLimits } from '../config/settings.js'
import type { RequestContext } from '../core/request-context.js'
import type { UsageRecorder } from '../core/usage-record.js'
import type { ClientDialect, SessionKind } from '../dialects/realtime/dialect.js'
import type { Logger } from '../observability/logger.js'
import type { TranscriptionModel } from '../routing/router.js'

/** Traffic of all sessions of this process: plain numbers, as every message is counted. */
export class SessionTraffic {
  clientEvents = 0
  clientBytes = 0
  upstreamEvents = 0
  upstreamBytes = 0
}

/** What a session was opened for, and where. */
export interface SessionOpening {
  /** Its log gets the bytes, the summed units and, when the session failed, the failure. */
  readonly call: RequestContext
  readonly kind: SessionKind
  /** As the caller named it; a transcription session may have been opened without one. */
  readonly model: string | undefined
  /** The channel's names of models that the session's settings may name. */
  readonly modelMap: Readonly<Record<string, string>>
  /** What the channel has under a name in the session's settings. */
  readonly transcriptionModel: (model: string) => TranscriptionModel
  readonly channelId: string
  /** The channel's secret or the caller's own bearer, removed from every upstream text that the client may see. */
  readonly credentials: string
}

/** Everything a session needs besides its two sockets. */
export interface SessionContext extends SessionOpening {
  readonly requestId: string
  readonly clientDialect: ClientDialect
  readonly limits: RealtimeLimits
  readonly recorder: UsageRecorder
  readonly traffic: SessionTraffic
  readonly keyId: string
  readonly logger: Pick<Logger, 'info' | 'warn'>
}
