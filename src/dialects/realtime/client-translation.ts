import { eventTypeOf, splice } from '../../core/frame-scan.js'
import { RawObject } from '../../core/json-object.js'
import { pathToGa, withMappedParam } from './error-paths.js'
import { withMember, withObject } from './event-edits.js'
import { NAMES_TO_GA } from './event-names.js'
import { itemToGa } from './items.js'
import { responseToGa } from './response-objects.js'
import { sessionToGa } from './session-objects.js'
import type { SessionMemory } from './session-state.js'

/** Makes the id of an event that the gateway adds out of the one it stands beside. */
const ADDED_EVENT = '_item'

/** What a beta upstream's event says to a GA client, which is told when an item is complete as well. */
export function eventToGaClient(frame: Buffer, memory: SessionMemory): Buffer[] {
  const found = eventTypeOf(frame)
  if (found === undefined) return [frame]
  const { type, start, end } = found
  const name = NAMES_TO_GA.get(type)
  if (name !== undefined) return [splice(frame, [{ start, end, text: `"${name}"` }])]
  switch (type) {
    case 'session.created':
    case 'session.updated':
      return [
        withObject(frame, 'session', (session) => {
          sessionToGa(session)
        }),
      ]
    case 'transcription_session.updated':
      return [transcriptionUpdated(frame)]
    case 'response.created':
    case 'response.done':
      return [withObject(frame, 'response', responseToGa)]
    case 'conversation.item.created':
      return itemCreated(frame, memory)
    case 'conversation.item.retrieved':
    case 'response.output_item.added':
      return [withMember(frame, 'item', itemToGa)]
    case 'response.output_item.done':
      return outputItemDone(frame, memory)
    case 'error':
      return [withMappedParam(frame, pathToGa)]
    default:
      return [frame]
  }
}

const transcriptionUpdated = (frame: Buffer): Buffer =>
  withObject(frame, 'session', (session, event) => {
    sessionToGa(session, 'transcription')
    event.setText('type', 'session.updated')
  })

/** An item that is complete is said to be at once; one in progress when its output item is done. */
function itemCreated(frame: Buffer, memory: SessionMemory): Buffer[] {
  const added = withMember(frame, 'item', itemToGa, 'conversation.item.added')
  const event = RawObject.parse(added)
  const item = event?.object('item')
  if (event === undefined || item === undefined) return [added]
  if (item.text('status') !== 'in_progress') return [added, itemDone(event)]
  const previousItemId = event.get('previous_item_id')?.toString() ?? 'null'
  memory.itemOpened(item.text('id') ?? '', previousItemId)
  return [added]
}

/** Only items of the conversation are announced: an answer outside of it has output items alone. */
function outputItemDone(frame: Buffer, memory: SessionMemory): Buffer[] {
  const done = withMember(frame, 'item', itemToGa)
  const event = RawObject.parse(done)
  const previousItemId = memory.itemClosed(event?.object('item')?.text('id') ?? '')
  if (event === undefined || previousItemId === undefined) return [done]
  event.take('response_id')
  event.take('output_index')
  event.set('previous_item_id', previousItemId)
  return [itemDone(event), done]
}

function itemDone(event: RawObject): Buffer {
  event.setText('type', 'conversation.item.done')
  const eventId = event.text('event_id')
  if (eventId !== undefined) event.setText('event_id', `${eventId}${ADDED_EVENT}`)
  return event.toBuffer()
}
