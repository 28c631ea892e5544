import { RawObject } from '../../core/json-object.js'
import { stringAt } from '../../core/json-spans.js'
import { modalitiesToBeta, modalitiesToGa, type RealtimeDialect } from './dialect.js'

/** `undefined`: the other dialect has no word for this value, which stays where it is for the upstream to judge. */
type Conversion = (value: Buffer) => Buffer | undefined

/** A flat key of beta and its place under `audio` in GA. */
export interface AudioSetting {
  readonly beta: string
  readonly half: 'input' | 'output'
  readonly ga: string
  readonly toGa: Conversion
  readonly toBeta: Conversion
}

/** Hertz; GA spells it out, beta means it. */
const PCM_RATE = '24000'

const FORMATS: readonly (readonly [beta: string, ga: string, text: string])[] = [
  ['pcm16', 'audio/pcm', `{"type":"audio/pcm","rate":${PCM_RATE}}`],
  ['g711_ulaw', 'audio/pcmu', '{"type":"audio/pcmu"}'],
  ['g711_alaw', 'audio/pcma', '{"type":"audio/pcma"}'],
]

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
    object.take(beta)
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
    audio.object(half)?.take(ga)
    object.set(beta, converted)
  }
  for (const half of ['input', 'output']) if (audio.object(half)?.isEmpty === true) audio.take(half)
  if (audio.isEmpty) object.take('audio')
}

const isNull = (value: Buffer): boolean => value.toString('latin1') === 'null'

/** What GA has no place for, in the caller's spelling (JSON text), to be said back to it. */
export interface ClientSettings {
  readonly modalities?: string
  readonly temperature?: string
}

/** How many responses or items may be under way before the oldest is forgotten; a real session has one or two. */
const MAXIMUM_OPEN = 16

/** Longer spellings are not kept; the other dialect's own words are said instead. */
const MAXIMUM_KEPT_BYTES = 64

/** The handful of facts a translated session needs to remember; bounded, however long the session. */
export class SessionState {
  private clientSettings: ClientSettings = {}
  private nextResponse: ClientSettings = {}
  private readonly responses = new Map<string, ClientSettings>()
  private readonly openItems = new Map<string, string>()

  get session(): ClientSettings {
    return this.clientSettings
  }

  sessionUpdated(session: RawObject): void {
    this.clientSettings = { ...this.clientSettings, ...wordsOf(session) }
  }

  responseRequested(response: RawObject | undefined): void {
    this.nextResponse = response === undefined ? {} : wordsOf(response)
  }

  /** An error may be the answer to a `response.create`: its words must not be taken for the next response's. */
  failed(): void {
    this.nextResponse = {}
  }

  /** The words for a response that begins; the caller's own if it asked for one. */
  responseBegun(id: string): ClientSettings {
    const words = { ...this.clientSettings, ...this.nextResponse }
    this.nextResponse = {}
    keep(this.responses, id, words)
    return words
  }

  responseEnded(id: string): ClientSettings {
    const words = this.responses.get(id) ?? this.clientSettings
    this.responses.delete(id)
    return words
  }

  /** An item of the conversation that is not complete; `previousItemId` as JSON text. */
  itemOpened(id: string, previousItemId: string): void {
    keep(this.openItems, id, previousItemId)
  }

  /** The `previous_item_id` of an item that was opened here, else `undefined`. */
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

function wordsOf(object: RawObject): ClientSettings {
  const modalities = spelling(object, 'modalities')
  const temperature = spelling(object, 'temperature')
  return { ...(modalities !== undefined && { modalities }), ...(temperature !== undefined && { temperature }) }
}

/** A copy: a part of a frame would keep the whole frame alive. */
function spelling(object: RawObject, name: string): string | undefined {
  const value = object.get(name)
  if (value === undefined || value.length > MAXIMUM_KEPT_BYTES) return undefined
  const text = value.toString('latin1')
  return text === 'null' ? undefined : text
}

/** What beta answers with when the caller set nothing. */
export const DEFAULT_TEMPERATURE = '0.8'

export type SessionKind = 'realtime' | 'transcription'

/** A beta session, or the changed part of one, with the keys of GA. `type` is what GA cannot do without. */
export function sessionToGa(session: RawObject, kind: SessionKind = 'realtime'): void {
  const modalities = session.get('modalities')
  nestAudio(session, SESSION_SETTINGS)
  if (kind === 'transcription') session.take('modalities')
  else if (modalities !== undefined) {
    session.set('modalities', modalitiesToGa(modalities))
    session.rename('modalities', 'output_modalities')
  }
  session.rename('max_response_output_tokens', 'max_output_tokens')
  session.take('temperature')
  session.take('client_secret')
  if (!session.has('type')) session.setFirst('type', JSON.stringify(kind))
}

/** A GA session, or the changed part of one, with the keys of beta. */
export function sessionToBeta(session: RawObject, { modalities: callersWords }: ClientSettings = {}): void {
  const modalities = session.get('output_modalities')
  flattenAudio(session, SESSION_SETTINGS)
  if (modalities !== undefined) {
    session.set('output_modalities', modalitiesToBeta(modalities, [callersWords]))
    session.rename('output_modalities', 'modalities')
  }
  session.rename('max_output_tokens', 'max_response_output_tokens')
  session.take('type')
}

/** The same for a session that a server shows: with the keys every beta session has and GA knows nothing of. */
export function shownSessionToBeta(session: RawObject, words: ClientSettings): void {
  const isTranscription = session.text('type') === 'transcription'
  sessionToBeta(session, words)
  if (!isTranscription && !session.has('temperature'))
    session.set('temperature', words.temperature ?? DEFAULT_TEMPERATURE)
  if (!session.has('client_secret')) session.set('client_secret', 'null')
}

/**
 * `session.created` for a client that has not shown its dialect yet: the upstream's session as it came, and the other
 * dialect's keys behind it, so that either client can read it.
 */
export function sessionInBoth(frame: Buffer, upstream: RealtimeDialect): Buffer {
  const event = RawObject.parse(frame)
  const shown = event?.object('session')
  const other = RawObject.parse(event?.get('session'))
  if (event === undefined || shown === undefined || other === undefined) return frame
  if (upstream === 'ga') shownSessionToBeta(other, {})
  else sessionToGa(other)
  for (const name of other.names) {
    const value = other.get(name)
    if (value !== undefined && !shown.has(name)) shown.set(name, value)
  }
  return event.toBuffer()
}
