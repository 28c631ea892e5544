import type { WebSocket } from 'ws'
import type { RealtimeDialect } from '../dialects/realtime/dialect.js'
import type { CallContext } from './call-context.js'

/** What a caller asked for when it opened its socket. */
export interface RealtimeOpening {
  readonly model: string
  /** The caller's other query parameters, decoded, in their order. */
  readonly query: readonly (readonly [string, string])[]
}

/** An open session at an upstream, not a byte of which has been read. */
export interface RealtimeUpstream {
  /** Open and paused: attach listeners, then `resume`. Whoever holds it closes it. */
  readonly socket: WebSocket
  readonly dialect: RealtimeDialect
}

export interface RealtimeProvider {
  /** Dials; rejects with the `GatewayError` of an upstream that refuses, fails or is silent. */
  open(opening: RealtimeOpening, context: CallContext): Promise<RealtimeUpstream>
}
