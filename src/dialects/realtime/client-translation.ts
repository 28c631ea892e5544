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
  serverSessionToBeta,
  typeOfBetaSession,
} from './session-state.js'

type NameMap = ReadonlyMap<string, string>

const BETA_OBJECT = 'realtime.item'

const PARTS_TO_GA: NameMap = new Map([
  ['text', 'output_text'],
  ['audio', 'output_audio'],
])
const PARTS_TO_BETA: NameMap = new Map([
  ['output_text', 'text'],
  ['output_audio', 'audio'],
])

/** An item with the content types of GA, which differ for assistant messages; otherwise the same bytes. */
export function itemToGa(item: Buffer): Buffer {
  const parsed = RawObject.parse(item)
  return parsed?.text('role') === 'assistant' && renameParts(parsed, PARTS_TO_GA) ? parsed.toBuffer() : item
}

/** An item with the content types of beta, for a beta upstream. */
export function itemToBeta(item: Buffer): Buffer {
  const parsed = RawObject.parse(item)
  return parsed !== undefined && renameParts(parsed, PARTS_TO_BETA) ? parsed.toBuffer() : item
}

/** A server's item with the content types of beta: beta items name their kind of object. */
function serverItemToBeta(item: Buffer): Buffer {
  const parsed = RawObject.parse(item)
  if (parsed === undefined) return item
  const isRenamed = renameParts(parsed, PARTS_TO_BETA)
  if (parsed.has('object')) return isRenamed ? parsed.toBuffer() : item
  parsed.setText('object', BETA_OBJECT)
  return parsed.toBuffer()
}

/** The `part` of a content part event. Its type is `audio` or `text` in both dialects; some GA servers use the new names. */
const partToBeta = (part: Buffer): Buffer => withNamedType(part, PARTS_TO_BETA)

/** True when a part was renamed. */
function renameParts(item: RawObject, names: NameMap): boolean {
  const content = item.get('content')
  if (content === undefined) return false
  const renamed = mapElements(content, (part) => withNamedType(part, names))
  if (renamed === content) return false
  item.set('content', renamed)
  return true
}

function withNamedType(part: Buffer, names: NameMap): Buffer {
  const type = FrameScan.of(part)?.type()
  const name = type === undefined ? undefined : names.get(type.type)
  if (type === undefined || name === undefined) return part
  return splice(part, [{ start: type.start, end: type.end, text: `"${name}"` }])
}

/** A beta response, or a request for one, with the keys of GA. */
export function responseToGa(response: RawObject): void {
  const modalities = response.get('modalities')
  nestAudio(response, OUTPUT_SETTINGS)
  if (modalities !== undefined) {
    response.set('modalities', modalitiesToGa(modalities))
    response.rename('modalities', 'output_modalities')
  }
  response.rename('max_response_output_tokens', 'max_output_tokens')
  response.remove('temperature')
  for (const list of ['input', 'output']) mapList(response, list, itemToGa)
}

/** A GA request for a response with the keys of beta; `max_output_tokens` has the same name in both. */
export function responseToBeta(response: RawObject): void {
  renameForBeta(response, [])
  mapList(response, 'input', itemToBeta)
}

/** A GA server's response with the keys of beta and the client's own settings. */
function serverResponseToBeta(response: RawObject, settings: ClientSettings, sessionSettings: ClientSettings): void {
  renameForBeta(response, [settings.modalities, sessionSettings.modalities])
  mapList(response, 'output', serverItemToBeta)
  if (!response.has('temperature')) response.set('temperature', settings.temperature ?? DEFAULT_TEMPERATURE)
}

function renameForBeta(response: RawObject, clientModalities: readonly (string | undefined)[]): void {
  const modalities = response.get('output_modalities')
  flattenAudio(response, OUTPUT_SETTINGS)
  if (modalities === undefined) return
  response.set('output_modalities', modalitiesToBeta(modalities, clientModalities))
  response.rename('output_modalities', 'modalities')
}

function mapList(object: RawObject, name: string, edit: (item: Buffer) => Buffer): void {
  const list = object.get(name)
  if (list !== undefined) object.set(name, mapElements(list, edit))
}

/** Random text with which GA hides the length of a delta; beta does not have it. */
const OBFUSCATION_FIELD = 'obfuscation'

/** Translates an event of a GA upstream for a beta client; no frame for an event that beta does not have. */
export function eventToBetaClient(frame: Buffer, state: SessionState): Buffer[] {
  const scan = FrameScan.of(frame)
  const type = scan?.type()
  if (scan === undefined || type === undefined) return [frame]
  const name = NAMES_TO_BETA.get(type.type)
  if (name !== undefined || type.type.endsWith('.delta')) return [withoutObfuscation(frame, scan, type, name)]
  return type.type === 'conversation.item.done' ? [] : [translateEvent(frame, type.type, state)]
}

function withoutObfuscation(
  frame: Buffer,
  scan: FrameScan,
  { start, end }: EventType,
  name: string | undefined,
): Buffer {
  const cuts = scan.removal(OBFUSCATION_FIELD)
  if (name !== undefined) cuts.push({ start, end, text: `"${name}"` })
  return splice(frame, cuts)
}

function translateEvent(frame: Buffer, type: string, state: SessionState): Buffer {
  switch (type) {
    case 'session.created':
    case 'session.updated':
      return withObject(frame, 'session', (session, event) => {
        const isTranscription = session.text('type') === 'transcription'
        serverSessionToBeta(session, state.session)
        if (isTranscription) event.setText('type', `transcription_${type}`)
      })
    case 'response.created':
    case 'response.done':
      return withObject(frame, 'response', (response) => {
        const id = response.text('id') ?? ''
        const settings = type === 'response.created' ? state.responseBegun(id) : state.responseEnded(id)
        serverResponseToBeta(response, settings, state.session)
      })
    case 'conversation.item.added':
      return withMember(frame, 'item', serverItemToBeta, 'conversation.item.created')
    case 'conversation.item.created':
    case 'conversation.item.retrieved':
    case 'response.output_item.added':
    case 'response.output_item.done':
      return withMember(frame, 'item', serverItemToBeta)
    case 'response.content_part.added':
    case 'response.content_part.done':
      return withMember(frame, 'part', partToBeta)
    case 'error':
      state.failed()
      return withMappedParam(frame, pathToBeta)
    default:
      return frame
  }
}

/** Suffix of a generated event's id; the rest is the id of the event that it accompanies. */
const ITEM_EVENT_SUFFIX = '_item'

/** Translates an event of a beta upstream for a GA client, which also gets an event for each completed item. */
export function eventToGaClient(frame: Buffer, state: SessionState): Buffer[] {
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
          sessionToGa(session, typeOfBetaSession(session))
        }),
      ]
    case 'transcription_session.created':
    case 'transcription_session.updated':
      return [
        withObject(frame, 'session', (session, event) => {
          sessionToGa(session, 'transcription')
          event.setText('type', type.replace('transcription_', ''))
        }),
      ]
    case 'response.created':
    case 'response.done':
      return [withObject(frame, 'response', responseToGa)]
    case 'conversation.item.created':
      return itemCreated(frame, state)
    case 'conversation.item.retrieved':
    case 'response.output_item.added':
      return [withMember(frame, 'item', itemToGa)]
    case 'response.output_item.done':
      return outputItemDone(frame, state)
    case 'error':
      return [withMappedParam(frame, pathToGa)]
    default:
      return [frame]
  }
}

/** For a completed item, `done` follows at once; for an item in progress, after `output_item.done`. */
function itemCreated(frame: Buffer, state: SessionState): Buffer[] {
  const added = withMember(frame, 'item', itemToGa, 'conversation.item.added')
  const event = RawObject.parse(added)
  const item = event?.object('item')
  if (event === undefined || item === undefined) return [added]
  if (item.text('status') !== 'in_progress') return [added, itemDone(event)]
  const previousItemId = event.get('previous_item_id')?.toString() ?? 'null'
  state.itemOpened(item.text('id') ?? '', previousItemId)
  return [added]
}

/** Only items of the conversation get the event: an out-of-band response has only output items. */
function outputItemDone(frame: Buffer, state: SessionState): Buffer[] {
  const done = withMember(frame, 'item', itemToGa)
  const event = RawObject.parse(done)
  const previousItemId = state.itemClosed(event?.object('item')?.text('id') ?? '')
  if (event === undefined || previousItemId === undefined) return [done]
  event.remove('response_id')
  event.remove('output_index')
  event.set('previous_item_id', previousItemId)
  return [itemDone(event), done]
}

function itemDone(event: RawObject): Buffer {
  event.setText('type', 'conversation.item.done')
  const eventId = event.text('event_id')
  if (eventId !== undefined) event.setText('event_id', `${eventId}${ITEM_EVENT_SUFFIX}`)
  return event.toBuffer()
}
