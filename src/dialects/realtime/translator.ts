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

/** Translates a beta client's event for a GA upstream. */
function eventToGa({ type, frame }: ClientEvent, state: SessionState): Buffer {
  switch (type) {
    case 'session.update':
      return withObject(frame, 'session', (session) => {
        state.sessionUpdated(session)
        sessionToGa(session)
      })
    case 'transcription_session.update':
      return withObject(frame, 'session', (session, event) => {
        sessionToGa(session, 'transcription')
        event.setText('type', 'session.update')
      })
    case 'response.create':
      state.responseRequested(RawObject.parse(frame)?.object('response'))
      return withObject(frame, 'response', responseToGa)
    case 'conversation.item.create':
      return withMember(frame, 'item', itemToGa)
    default:
      return frame
  }
}

/** Translates a GA client's event for a beta upstream; keys that beta does not have stay, for the upstream to refuse. */
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

/** Beta begins the two kinds of session with events of their own. */
const CREATED: ReadonlySet<string> = new Set(['session.created', 'transcription_session.created'])

interface TranslatorOptions {
  readonly client: ClientDialect
  readonly upstream: RealtimeDialect
}

/**
 * Translates one session, frame by frame, in order. With the same dialect on both sides, and for every event that is
 * the same in both, the same frame is returned. Never throws; keeps bounded state, no items.
 */
export class RealtimeTranslator {
  private readonly client: ClientDialect
  private readonly upstream: RealtimeDialect
  private readonly state = new SessionState()

  constructor({ client, upstream }: TranslatorOptions) {
    this.client = client
    this.upstream = upstream
  }

  /** The upstream frames for an accepted client event. */
  toUpstream(event: ClientEvent): readonly Buffer[] {
    this.client.learn(event.shows)
    if (this.spoken === this.upstream) return [event.frame]
    return [this.upstream === 'ga' ? eventToGa(event, this.state) : eventToBeta(event)]
  }

  /** The client frames for an upstream event; none for an event that the client's dialect does not have. */
  toClient(frame: Buffer): readonly Buffer[] {
    if (this.client.isOpen && CREATED.has(eventTypeOf(frame)?.type ?? '')) return [sessionInBoth(frame, this.upstream)]
    if (this.spoken === this.upstream) return [frame]
    return this.upstream === 'ga' ? eventToBetaClient(frame, this.state) : eventToGaClient(frame, this.state)
  }

  private get spoken(): RealtimeDialect {
    return this.client.spoken
  }
}
