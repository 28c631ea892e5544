import { RawObject } from '../../core/json-object.js'
import type { ClientEvent } from './client-events.js'
import { withMember, withObject } from './event-edits.js'
import { itemToBeta, itemToGa } from './items.js'
import { responseToBeta, responseToGa } from './response-objects.js'
import { sessionToBeta, sessionToGa } from './session-objects.js'
import type { SessionMemory } from './session-state.js'

/** What a beta client's event says to a GA upstream. */
export function eventToGa({ type, frame }: ClientEvent, memory: SessionMemory): Buffer {
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
      memory.responseAsked(RawObject.parse(frame)?.object('response'))
      return withObject(frame, 'response', responseToGa)
    case 'conversation.item.create':
      return withMember(frame, 'item', itemToGa)
    default:
      return frame
  }
}

/** What a GA client's event says to a beta upstream; keys that beta never had go along for it to refuse. */
export function eventToBeta({ type, frame }: ClientEvent): Buffer {
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
