import { quoted } from '../../core/errors.js'
import { RawObject } from '../../core/json-object.js'
import { isRecord } from '../../core/validation-rules.js'
import { type EventRefusal, type ModelHolder, refusal } from './session-rules.js'

type Fields = Readonly<Record<string, unknown>>

/** Where a session names the model that writes down what the client says: in beta, and in GA. */
const MODEL_PATHS: readonly (readonly string[])[] = [
  ['input_audio_transcription', 'model'],
  ['audio', 'input', 'transcription', 'model'],
]

const memberOf = (value: unknown, name: string): unknown => (isRecord(value) ? value[name] : undefined)

/** The model that writes down what the client says, wherever a session names it: an upstream may read either dialect. */
export function transcriptionModelsOf(session: unknown): readonly { readonly path: string; readonly model: string }[] {
  return MODEL_PATHS.flatMap((path) => {
    const model = path.reduce(memberOf, session)
    return typeof model === 'string' ? [{ path: path.join('.'), model }] : []
  })
}

/** Another model than the session's writes down what the client says: its key needs access to that one, too. */
export function forbiddenTranscription(
  holder: ModelHolder,
  session: unknown,
  mayUse: ((model: string) => boolean) | undefined,
  eventId: string | null,
): EventRefusal | undefined {
  const named = transcriptionModelsOf(session).find(({ model }) => mayUse?.(model) === false)
  if (named === undefined) return undefined
  const message = `The model ${quoted(named.model)} is not served to this session, or not open to this API key.`
  return refusal('model_not_allowed', message, { param: `${holder}.${named.path}`, eventId })
}

/**
 * What a transcription session never does: respond, or become a conversation. No model was authorised for either, so the
 * gateway refuses both itself, in the upstream's words, whatever the upstream would do.
 */
export function forbiddenInTranscription(
  type: string,
  fields: Fields,
  eventId: string | null,
): EventRefusal | undefined {
  if (type === 'response.create') {
    const message = 'Responses cannot be created in a transcription session.'
    return refusal('invalid_session_type', message, { param: 'type', eventId })
  }
  const session = fields['session']
  if (type === 'session.update' && memberOf(session, 'type') !== 'transcription') {
    const message = 'Passing a realtime session update event to a transcription session is not allowed.'
    const param = memberOf(session, 'type') === undefined ? 'type' : 'session.type'
    return refusal('invalid_session_type', message, { param, eventId })
  }
  return undefined
}

/** A session opened without a model has none later either, except the one that transcribes. */
export const namesNoModel = (session: unknown, eventId: string | null): EventRefusal | undefined =>
  memberOf(session, 'model') === undefined
    ? undefined
    : refusal(
        'invalid_value',
        "Invalid 'session.model': a transcription session has no model but the one of its 'transcription' settings.",
        { param: 'session.model', eventId },
      )

/** Client events that may name the model which transcribes. */
const NAMING_EVENTS: ReadonlySet<string> = new Set(['session.update', 'transcription_session.update'])

/** Server events that show it. */
const SETTINGS_EVENTS: ReadonlySet<string> = new Set([
  'session.created',
  'session.updated',
  'transcription_session.created',
  'transcription_session.updated',
])

/** Whether an event of either dialect says how its session is set. */
export const showsSettings = (type: string): boolean => SETTINGS_EVENTS.has(type)

/**
 * The names of transcription models at an upstream whose channel maps models: client events get the upstream's name,
 * server events the client's. Holds at most one name for each entry of the map.
 */
export class TranscriptionModelNames {
  private readonly clientNames = new Map<string, string>()

  /** `modelMap`: the channel's, from the gateway's names to the upstream's. */
  constructor(private readonly modelMap: Readonly<Record<string, string>>) {}

  /** The same frame unless it names a model that the channel maps. */
  toUpstream(type: string, frame: Buffer): Buffer {
    return NAMING_EVENTS.has(type) ? withModels(frame, this.upstreamName) : frame
  }

  /** The same frame unless it shows a model that the client has named otherwise. */
  toClient(type: string, frame: Buffer): Buffer {
    return this.clientNames.size > 0 && showsSettings(type) ? withModels(frame, this.clientName) : frame
  }

  private readonly upstreamName = (model: string): string => {
    const name = Object.hasOwn(this.modelMap, model) ? (this.modelMap[model] ?? model) : model
    if (name === model) this.clientNames.delete(name)
    else this.clientNames.set(name, model)
    return name
  }

  private readonly clientName = (model: string): string => this.clientNames.get(model) ?? model
}

/** The event with other models in its session; the same frame where all keep their names. */
function withModels(frame: Buffer, nameOf: (model: string) => string): Buffer {
  const event = RawObject.parse(frame)
  const session = event?.object('session')
  if (event === undefined || session === undefined) return frame
  const renamed = MODEL_PATHS.map((path) => renameModel(session, path, nameOf))
  return renamed.includes(true) ? event.toBuffer() : frame
}

/** Whether the object has a model at that path which got another name. */
function renameModel(object: RawObject, path: readonly string[], nameOf: (model: string) => string): boolean {
  const [member = '', ...below] = path
  if (below.length > 0) {
    const next = object.object(member)
    return next !== undefined && renameModel(next, below, nameOf)
  }
  const model = object.text(member)
  const name = model === undefined ? undefined : nameOf(model)
  if (name === undefined || name === model) return false
  object.setText(member, name)
  return true
}
