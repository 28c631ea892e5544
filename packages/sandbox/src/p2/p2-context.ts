import type { ServedLedger } from '../server/served-ledger.js'

/** How strict one P2 simulator is, and what it remembers between sessions. */
export interface P2Context {
  /** The only accepted ones; undefined accepts every app id, and every token but `bad`. */
  readonly appId: string | undefined
  readonly accessToken: string | undefined
  readonly wrongToken: 'handshake' | 'frame'
  /** Voices known beyond the usual ones. */
  readonly voices: readonly string[]
  readonly wavAccepted: boolean
  readonly acknowledge: boolean
  readonly paceMs: number
  readonly gapMs: number
  readonly closeAfterMs: number
  readonly served: ServedLedger
  readonly usedRequestIds: Set<string>
}
