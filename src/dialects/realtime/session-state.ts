import { RawObject } from '../../core/json-object.js'
import { FrameScan, stringAt } from '../../core/json-spans.js'
import type { Units } from '../../core/request-context.js'
import { reportedUsage } from '../../core/usage.js'
import { modalitiesToBeta, modalitiesToGa, type RealtimeDialect } from './dialect.js'

/** Converts a value; `undefined` when the other dialect has no such value, which then stays for the upstream to check. */
type Conversion = (value: Buffer) => Buffer | undefined

/** A flat key of beta and its place under `audio` in GA. */
export interface AudioSetting {
  readonly beta: string
  readonly half: 'input' | 'output'
  readonly ga: string
  readonly toGa: Conversion
  readonly toBeta: Conversion
}

/** Hertz; explicit in GA, implied in beta. */
const PCM_RATE = '24000'

const FORMATS: readonly (readonly [beta: string, ga: string, text: string])[] = [
  ['pcm16', 'audio/pcm', `{"type":"audio/pcm","rate":${PCM_RATE}}`],
  ['g711_ulaw', 'audio/pcmu', '{"type":"audio/pcmu"}'],
  ['g711_alaw', 'audio/pcma', '{"type":"audio/pcma"}'],
]

export const BETA_FORMATS: readonly string[] = FORMATS.map(([beta]) => beta)
export const GA_FORMATS: readonly string[] = FORMATS.map(([, ga]) => ga)

const same: Conversion = (value) => value

const formatToGa: Conversion = (value) => {
  if (isNull(value)) return value
  const name = stringAt(value, 0, value.length)
  const known = FORMATS.find(([beta]) => beta === name)
  return known === undefined ? undefined : Buffer.from(known[2])
}

const formatToBeta: Conversion = (value) => {
  if (isNull(value)) return value
  const format = RawObject.parse(value)
  const rate = format?.get('rate')?.toString()
  const known = FORMATS.find(([, ga]) => ga === format?.text('type'))
  if (known === undefined) return undefined
  return known[0] === 'pcm16' && rate !== undefined && rate !== PCM_RATE ? undefined : Buffer.from(`"${known[0]}"`)
}

export const OUTPUT_SETTINGS: readonly AudioSetting[] = [
  { beta: 'output_audio_format', half: 'output', ga: 'format', toGa: formatToGa, toBeta: formatToBeta },
  { beta: 'voice', half: 'output', ga: 'voice', toGa: same, toBeta: same },
]

export const SESSION_SETTINGS: readonly AudioSetting[] = [
  { beta: 'input_audio_format', half: 'input', ga: 'format', toGa: formatToGa, toBeta: formatToBeta },
  { beta: 'input_audio_transcription', half: 'input', ga: 'transcription', toGa: same, toBeta: same },
  { beta: 'input_audio_noise_reduction', half: 'input', ga: 'noise_reduction', toGa: same, toBeta: same },
  { beta: 'turn_detection', half: 'input', ga: 'turn_detection', toGa: same, toBeta: same },
  ...OUTPUT_SETTINGS,
  { beta: 'speed', half: 'output', ga: 'speed', toGa: same, toBeta: same },
]

/** Moves the flat audio settings of beta to where GA has them. */
export function nestAudio(object: RawObject, settings: readonly AudioSetting[]): void {
  for (const { beta, half, ga, toGa } of settings) {
    const value = object.get(beta)
    const converted = value === undefined ? undefined : toGa(value)
    if (converted === undefined) continue
    object.remove(beta)
    object.objectOrNew('audio').objectOrNew(half).set(ga, converted)
  }
}

/** Moves the audio settings of GA to the flat keys of beta; what beta has no key for stays under `audio`. */
export function flattenAudio(object: RawObject, settings: readonly AudioSetting[]): void {
  const audio = object.object('audio')
  if (audio === undefined) return
  for (const { beta, half, ga, toBeta } of settings) {
    const value = audio.object(half)?.get(ga)
    const converted = value === undefined ? undefined : toBeta(value)
    if (converted === undefined) continue
    audio.object(half)?.remove(ga)
    object.set(beta, converted)
  }
  for (const half of ['input', 'output']) if (audio.object(half)?.isEmpty === true) audio.remove(half)
  if (audio.isEmpty) object.remove('audio')
}

const isNull = (value: Buffer): boolean => value.toString('latin1') === 'null'

/** Settings that GA does not have, in the client's spelling (JSON text), for events sent back to that client. */
export interface ClientSettings {
  readonly modalities?: string
  readonly temperature?: string
}

/** Maximum of responses or items under way before the oldest is dropped; a real session has one or two. */
const MAXIMUM_OPEN = 16

/** Longer spellings are not kept; the other dialect's own are used instead. */
const MAXIMUM_KEPT_BYTES = 64

/** State of a translated session: few values, bounded however long the session. */
export class SessionState {
  private clientSettings: ClientSettings = {}
  private nextResponse: ClientSettings = {}
  private readonly responses = new Map<string, ClientSettings>()
  private readonly openItems = new Map<string, string>()

  get session(): ClientSettings {
    return this.clientSettings
  }

  sessionUpdated(session: RawObject): void {
    this.clientSettings = { ...this.clientSettings, ...settingsOf(session) }
  }

  responseRequested(response: RawObject | undefined): void {
    this.nextResponse = response === undefined ? {} : settingsOf(response)
  }

  /** The error may belong to a `response.create`: its settings must not be used for the next response. */
  failed(): void {
    this.nextResponse = {}
  }

  /** The settings of a response that begins: the client's own, if it requested the response. */
  responseBegun(id: string): ClientSettings {
    const settings = { ...this.clientSettings, ...this.nextResponse }
    this.nextResponse = {}
    keep(this.responses, id, settings)
    return settings
  }

  responseEnded(id: string): ClientSettings {
    const settings = this.responses.get(id) ?? this.clientSettings
    this.responses.delete(id)
    return settings
  }

  /** Keeps an item of the conversation that is not complete; `previousItemId` as JSON text. */
  itemOpened(id: string, previousItemId: string): void {
    keep(this.openItems, id, previousItemId)
  }

  /** The `previous_item_id` of an item kept by `itemOpened`, else `undefined`. */
  itemClosed(id: string): string | undefined {
    const previousItemId = this.openItems.get(id)
    this.openItems.delete(id)
    return previousItemId
  }
}

function keep<Fact>(facts: Map<string, Fact>, id: string, fact: Fact): void {
  facts.delete(id)
  facts.set(id, fact)
  const [oldest] = facts.keys()
  if (facts.size > MAXIMUM_OPEN && oldest !== undefined) facts.delete(oldest)
}

function settingsOf(object: RawObject): ClientSettings {
  const modalities = spelling(object, 'modalities')
  const temperature = spelling(object, 'temperature')
  return { ...(modalities !== undefined && { modalities }), ...(temperature !== undefined && { temperature }) }
}

/** A copy: a slice of a frame would keep the whole frame in memory. */
function spelling(object: RawObject, name: string): string | undefined {
  const value = object.get(name)
  if (value === undefined || value.length > MAXIMUM_KEPT_BYTES) return undefined
  const text = value.toString('latin1')
  return text === 'null' ? undefined : text
}

/** Beta's default. */
export const DEFAULT_TEMPERATURE = '0.8'

/** `type` of a GA session. */
type SessionType = 'realtime' | 'transcription'

/** `object` of a transcription session, in both dialects. */
const TRANSCRIPTION_OBJECT = 'realtime.transcription_session'

/** The type of a beta server's session, which only its `object` tells. */
export const typeOfBetaSession = (session: RawObject): SessionType =>
  session.text('object') === TRANSCRIPTION_OBJECT ? 'transcription' : 'realtime'

/** A beta session, or the changed part of one, with the keys of GA, which requires `type`. */
export function sessionToGa(session: RawObject, type: SessionType = 'realtime'): void {
  const modalities = session.get('modalities')
  nestAudio(session, SESSION_SETTINGS)
  if (type === 'transcription') session.remove('modalities')
  else if (modalities !== undefined) {
    session.set('modalities', modalitiesToGa(modalities))
    session.rename('modalities', 'output_modalities')
  }
  session.rename('max_response_output_tokens', 'max_output_tokens')
  session.remove('temperature')
  session.remove('client_secret')
  if (!session.has('type')) session.setFirst('type', JSON.stringify(type))
}

/** A GA session, or the changed part of one, with the keys of beta. */
export function sessionToBeta(session: RawObject, { modalities: clientSpelling }: ClientSettings = {}): void {
  const modalities = session.get('output_modalities')
  flattenAudio(session, SESSION_SETTINGS)
  if (modalities !== undefined) {
    session.set('output_modalities', modalitiesToBeta(modalities, [clientSpelling]))
    session.rename('output_modalities', 'modalities')
  }
  session.rename('max_output_tokens', 'max_response_output_tokens')
  session.remove('type')
}

/** A server's session with the keys of beta, those that GA does not have included. */
export function serverSessionToBeta(session: RawObject, settings: ClientSettings): void {
  const isTranscription = session.text('type') === 'transcription'
  sessionToBeta(session, settings)
  if (!isTranscription && !session.has('temperature'))
    session.set('temperature', settings.temperature ?? DEFAULT_TEMPERATURE)
  if (!session.has('client_secret')) session.set('client_secret', 'null')
}

/**
 * `session.created` for a client whose dialect is not known yet: the upstream's session, and the other dialect's keys
 * after it, so that either client can read it. Of both kinds of session: clients of beta say so in the handshake where
 * they want a transcription session, so that `transcription_session.created` is for them alone.
 */
export function sessionInBoth(frame: Buffer, upstream: RealtimeDialect): Buffer {
  const event = RawObject.parse(frame)
  const session = event?.object('session')
  const other = RawObject.parse(event?.get('session'))
  if (event === undefined || session === undefined || other === undefined) return frame
  if (upstream === 'ga') serverSessionToBeta(other, {})
  else sessionToGa(other, typeOfBetaSession(other))
  event.setText('type', 'session.created')
  for (const name of other.names) {
    const value = other.get(name)
    if (value !== undefined && !session.has(name)) session.set(name, value)
  }
  return event.toBuffer()
}

/** The `response` of an event: of a client's `response.create`, and of the upstream events that begin and end a response. */
function responseIn(scan: FrameScan | undefined, frame: Buffer): Buffer | undefined {
  const response = scan?.member('response')
  return response && frame.subarray(response.valueStart, response.valueEnd)
}

/** The upstream's id of a response, the same from its beginning to its end. */
export const responseIdOf = (frame: Buffer): string | undefined => scanOf(frame)?.scan.text('id')

/** Whether a client requests a response that is not part of the conversation. */
export const requestsOutOfBand = (create: Buffer): boolean => scanOf(create)?.scan.text('conversation') === 'none'

/** Whether the upstream reports a response without a conversation, as some upstreams do for every response. */
export function isOutOfBand(frame: Buffer): boolean {
  const { scan, bytes } = scanOf(frame) ?? {}
  const id = scan?.member('conversation_id')
  return id !== undefined && bytes?.toString('latin1', id.valueStart, id.valueEnd) === 'null'
}

function scanOf(frame: Buffer): { scan: FrameScan; bytes: Buffer } | undefined {
  const bytes = responseIn(FrameScan.of(frame), frame)
  const scan = bytes && FrameScan.of(bytes)
  return scan && { scan, bytes }
}

const INPUT_TRANSCRIBED = 'conversation.item.input_audio_transcription.completed'

/**
 * The units that a server event bills, in either dialect: of `response.done`, whatever its status, and of a completed
 * input transcription. `undefined` for other events and where the upstream reports no usage. Only the usage is parsed.
 */
export function usageOf(frame: Buffer): Units | undefined {
  const scan = FrameScan.of(frame)
  const type = scan?.type()?.type
  if (type === INPUT_TRANSCRIBED) return unitsIn(frame, scan)
  const response = type === 'response.done' ? responseIn(scan, frame) : undefined
  return response && unitsIn(response, FrameScan.of(response))
}

function unitsIn(bytes: Buffer, scan: FrameScan | undefined): Units | undefined {
  const usage = scan?.member('usage')
  if (usage === undefined) return undefined
  try {
    return reportedUsage(JSON.parse(bytes.toString('utf8', usage.valueStart, usage.valueEnd)))?.units
  } catch {
    return undefined
  }
}
