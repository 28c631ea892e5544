import type { RealtimeDialect } from './realtime-dialect.js'

/** How one realtime simulator behaves. */
export interface RealtimeContext {
  readonly dialect: RealtimeDialect
  /** The only accepted key; undefined accepts every key but `bad`. */
  readonly apiKey: string | undefined
  /** What a wrong key gets: an HTTP 401, or an error event and close 3000. */
  readonly wrongKey: 'handshake' | 'event'
  /** Pause before each delta. */
  readonly paceMs: number
  readonly sessionMaximumMs: number
}
