import { RawObject } from '../../core/json-object.js'
import { eventTypeOf } from '../../core/json-spans.js'
import type { ClientEvent } from './client-events.js'
import {
  eventToBetaClient,
  eventToGaClient,
  itemToBeta,
  itemToGa,
  responseToBeta,
  responseToGa,
} from './client-translation.js'
import { type ClientDialect, type RealtimeDialect, withMember, withObject } from './dialect.js'
import { sessionInBoth, SessionState, sessionToBeta, sessionToGa } from './session-state.js'

/** What a beta client's event says to a GA upstream. */
function eventToGa({ type, frame }: ClientEvent, memory: SessionState): Buffer {
  switch (type) {
    case 'session.update':
      return withObject(frame, 'session', (session) => {
        memory.sessionUpdated(session)
        sessionToGa(session)
      })
    case 'transcription_session.update':
      return withObject(frame, 'session', (session, event) => {
        sessionToGa(session, 'transcription')
        event.setText('type', 'session.update')
      })
    case 'response.create':
      memory.responseRequested(RawObject.parse(frame)?.object('response'))
      return withObject(frame, 'response', responseToGa)
    case 'conversation.item.create':
      return withMember(frame, 'item', itemToGa)
    default:
      return frame
  }
}

/** What a GA client's event says to a beta upstream; keys that beta never had go along for it to refuse. */
function eventToBeta({ type, frame }: ClientEvent): Buffer {
  switch (type) {
    case 'session.update':
      return withObject(frame, 'session', (session, event) => {
        if (session.text('type') === 'transcription') event.setText('type', 'transcription_session.update')
        sessionToBeta(session)
      })
    case 'response.create':
      return withObject(frame, 'response', responseToBeta)
    case 'conversation.item.create':
      return withMember(frame, 'item', itemToBeta)
    default:
      return frame
  }
}

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
  private readonly state = new SessionState()

  constructor({ client, upstream }: TranslatorOptions) {
    this.client = client
    this.upstream = upstream
  }

  /** The frames that tell the upstream what an accepted event of the client says. */
  toUpstream(event: ClientEvent): readonly Buffer[] {
    this.client.learn(event.shows)
    if (this.spoken === this.upstream) return [event.frame]
    return [this.upstream === 'ga' ? eventToGa(event, this.state) : eventToBeta(event)]
  }

  /** The frames that tell the client what an event of the upstream says; none for one its dialect does not have. */
  toClient(frame: Buffer): readonly Buffer[] {
    if (this.client.dialect === undefined && eventTypeOf(frame)?.type === 'session.created') {
      return [sessionInBoth(frame, this.upstream)]
    }
    if (this.spoken === this.upstream) return [frame]
    return this.upstream === 'ga' ? eventToBetaClient(frame, this.state) : eventToGaClient(frame, this.state)
  }

  private get spoken(): RealtimeDialect {
    return this.client.dialect ?? 'beta'
  }
}
