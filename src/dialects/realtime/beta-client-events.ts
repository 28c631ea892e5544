import { type EventType, FrameScan, splice } from '../../core/frame-scan.js'
import { pathToBeta, withMappedParam } from './error-paths.js'
import { withMember, withObject } from './event-edits.js'
import { NAMES_TO_BETA } from './event-names.js'
import { partToBeta, shownItemToBeta } from './items.js'
import { shownResponseToBeta } from './response-objects.js'
import { shownSessionToBeta } from './session-objects.js'
import type { SessionMemory } from './session-state.js'

/** Random text that GA adds to hide the length of a delta; beta never had it. */
const PADDING = 'obfuscation'

/** What a GA upstream's event says to a beta client; no frame at all for one that beta does not have. */
export function eventToBetaClient(frame: Buffer, memory: SessionMemory): Buffer[] {
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

function rebuilt(frame: Buffer, type: string, memory: SessionMemory): Buffer {
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
