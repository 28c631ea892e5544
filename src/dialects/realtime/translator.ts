import { eventTypeOf } from '../../core/frame-scan.js'
import { eventToBetaClient } from './beta-client-events.js'
import type { ClientDialect } from './client-dialect.js'
import type { ClientEvent } from './client-events.js'
import { eventToGaClient } from './client-translation.js'
import type { RealtimeDialect } from './dialect.js'
import { sessionInBoth } from './session-in-both.js'
import { SessionMemory } from './session-state.js'
import { eventToBeta, eventToGa } from './upstream-events.js'

export interface TranslatorOptions {
  readonly client: ClientDialect
  readonly upstream: RealtimeDialect
}

/**
 * Translates one session, frame by frame, in order. Where both sides speak the same dialect, and for every event that
 * is the same in both, the very same frame comes back. Never throws; remembers a bounded handful of facts, no items.
 */
export class RealtimeTranslator {
  private readonly client: ClientDialect
  private readonly upstream: RealtimeDialect
  private readonly memory = new SessionMemory()

  constructor({ client, upstream }: TranslatorOptions) {
    this.client = client
    this.upstream = upstream
  }

  /** The frames that tell the upstream what an accepted event of the client says. */
  toUpstream(event: ClientEvent): readonly Buffer[] {
    this.client.learn(event.shows)
    if (this.spoken === this.upstream) return [event.frame]
    return [this.upstream === 'ga' ? eventToGa(event, this.memory) : eventToBeta(event)]
  }

  /** The frames that tell the client what an event of the upstream says; none for one its dialect does not have. */
  toClient(frame: Buffer): readonly Buffer[] {
    if (this.client.dialect === undefined && eventTypeOf(frame)?.type === 'session.created') {
      return [sessionInBoth(frame, this.upstream)]
    }
    if (this.spoken === this.upstream) return [frame]
    return this.upstream === 'ga' ? eventToBetaClient(frame, this.memory) : eventToGaClient(frame, this.memory)
  }

  private get spoken(): RealtimeDialect {
    return this.client.dialect ?? 'beta'
  }
}
