import { mapElements, RawObject } from '../../core/json-object.js'
import { type EventType, eventTypeOf, FrameScan, splice } from '../../core/json-spans.js'
import { modalitiesToBeta, modalitiesToGa, NAMES_TO_BETA, NAMES_TO_GA, withMember, withObject } from './dialect.js'
import { pathToBeta, pathToGa, withMappedParam } from './session-rules.js'
import {
  type ClientSettings,
  DEFAULT_TEMPERATURE,
  flattenAudio,
  nestAudio,
  OUTPUT_SETTINGS,
  type SessionState,
  sessionToGa,
  shownSessionToBeta,
} from './session-state.js'

type Names = ReadonlyMap<string, string>

const BETA_OBJECT = 'realtime.item'

const PARTS_TO_GA: Names = new Map([
  ['text', 'output_text'],
  ['audio', 'output_audio'],
])
const PARTS_TO_BETA: Names = new Map([
  ['output_text', 'text'],
  ['output_audio', 'audio'],
])

/** An item with the content types of GA, which differ in what the assistant said; the very same bytes otherwise. */
export function itemToGa(item: Buffer): Buffer {
  const parsed = RawObject.parse(item)
  return parsed?.text('role') === 'assistant' && renameParts(parsed, PARTS_TO_GA) ? parsed.toBuffer() : item
}

/** An item with the content types of beta, on its way to an upstream. */
export function itemToBeta(item: Buffer): Buffer {
  const parsed = RawObject.parse(item)
  return parsed !== undefined && renameParts(parsed, PARTS_TO_BETA) ? parsed.toBuffer() : item
}

/** The same for an item that a server shows: beta items name their kind of object. */
function shownItemToBeta(item: Buffer): Buffer {
  const parsed = RawObject.parse(item)
  if (parsed === undefined) return item
  const isRenamed = renameParts(parsed, PARTS_TO_BETA)
  if (parsed.has('object')) return isRenamed ? parsed.toBuffer() : item
  parsed.setText('object', BETA_OBJECT)
  return parsed.toBuffer()
}

/** The `part` of a content part event: its type is `audio` or `text` in both dialects, but for some GA servers. */
const partToBeta = (part: Buffer): Buffer => withNamedType(part, PARTS_TO_BETA)

/** True when a part was renamed. */
function renameParts(item: RawObject, names: Names): boolean {
  const content = item.get('content')
  if (content === undefined) return false
  const renamed = mapElements(content, (part) => withNamedType(part, names))
  if (renamed === content) return false
  item.set('content', renamed)
  return true
}

function withNamedType(part: Buffer, names: Names): Buffer {
  const type = FrameScan.of(part)?.type()
  const name = type === undefined ? undefined : names.get(type.type)
  if (type === undefined || name === undefined) return part
  return splice(part, [{ start: type.start, end: type.end, text: `"${name}"` }])
}

/** A beta response, or the wish for one, with the keys of GA. */
export function responseToGa(response: RawObject): void {
  const modalities = response.get('modalities')
  nestAudio(response, OUTPUT_SETTINGS)
  if (modalities !== undefined) {
    response.set('modalities', modalitiesToGa(modalities))
    response.rename('modalities', 'output_modalities')
  }
  response.rename('max_response_output_tokens', 'max_output_tokens')
  response.take('temperature')
  for (const list of ['input', 'output']) mapList(response, list, itemToGa)
}

/** A GA wish for a response with the keys of beta, whose `max_output_tokens` has the same name here. */
export function responseToBeta(response: RawObject): void {
  renameForBeta(response, [])
  mapList(response, 'input', itemToBeta)
}

/** A GA response that a server shows, with the keys of beta and the caller's own words. */
function shownResponseToBeta(response: RawObject, words: ClientSettings, session: ClientSettings): void {
  renameForBeta(response, [words.modalities, session.modalities])
  mapList(response, 'output', shownItemToBeta)
  if (!response.has('temperature')) response.set('temperature', words.temperature ?? DEFAULT_TEMPERATURE)
}

function renameForBeta(response: RawObject, callersWords: readonly (string | undefined)[]): void {
  const modalities = response.get('output_modalities')
  flattenAudio(response, OUTPUT_SETTINGS)
  if (modalities === undefined) return
  response.set('output_modalities', modalitiesToBeta(modalities, callersWords))
  response.rename('output_modalities', 'modalities')
}

function mapList(object: RawObject, name: string, edit: (item: Buffer) => Buffer): void {
  const list = object.get(name)
  if (list !== undefined) object.set(name, mapElements(list, edit))
}

/** Random text that GA adds to hide the length of a delta; beta never had it. */
const PADDING = 'obfuscation'

/** What a GA upstream's event says to a beta client; no frame at all for one that beta does not have. */
export function eventToBetaClient(frame: Buffer, memory: SessionState): Buffer[] {
  const scan = FrameScan.of(frame)
  const type = scan?.type()
  if (scan === undefined || type === undefined) return [frame]
  const name = NAMES_TO_BETA.get(type.type)
  if (name !== undefined || type.type.endsWith('.delta')) return [withoutPadding(frame, scan, type, name)]
  return type.type === 'conversation.item.done' ? [] : [rebuilt(frame, type.type, memory)]
}

function withoutPadding(frame: Buffer, scan: FrameScan, { start, end }: EventType, name: string | undefined): Buffer {
  const cuts = scan.removal(PADDING)
  if (name !== undefined) cuts.push({ start, end, text: `"${name}"` })
  return splice(frame, cuts)
}

function rebuilt(frame: Buffer, type: string, memory: SessionState): Buffer {
  switch (type) {
    case 'session.created':
    case 'session.updated':
      return withObject(frame, 'session', (session, event) => {
        const isTranscription = session.text('type') === 'transcription'
        shownSessionToBeta(session, memory.session)
        if (isTranscription && type === 'session.updated') event.setText('type', 'transcription_session.updated')
      })
    case 'response.created':
    case 'response.done':
      return withObject(frame, 'response', (response) => {
        const id = response.text('id') ?? ''
        const words = type === 'response.created' ? memory.responseBegun(id) : memory.responseEnded(id)
        shownResponseToBeta(response, words, memory.session)
      })
    case 'conversation.item.added':
      return withMember(frame, 'item', shownItemToBeta, 'conversation.item.created')
    case 'conversation.item.created':
    case 'conversation.item.retrieved':
    case 'response.output_item.added':
    case 'response.output_item.done':
      return withMember(frame, 'item', shownItemToBeta)
    case 'response.content_part.added':
    case 'response.content_part.done':
      return withMember(frame, 'part', partToBeta)
    case 'error':
      memory.failed()
      return withMappedParam(frame, pathToBeta)
    default:
      return frame
  }
}

/** Makes the id of an event that the gateway adds out of the one it stands beside. */
const ADDED_EVENT = '_item'

/** What a beta upstream's event says to a GA client, which is told when an item is complete as well. */
export function eventToGaClient(frame: Buffer, memory: SessionState): Buffer[] {
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
function itemCreated(frame: Buffer, memory: SessionState): Buffer[] {
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
function outputItemDone(frame: Buffer, memory: SessionState): Buffer[] {
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
