import { RawObject } from '../../core/json-object.js'
import { isRecord } from '../../core/validation-rules.js'

/** What sessions are for: `conversation` has responses of a model, `transcription` only writes down what the client says. */
export type SessionKind = 'conversation' | 'transcription'

/** `beta`: the specification's event names and session keys. `ga`: those that upstream P1 speaks today. */
export type RealtimeDialect = 'ga' | 'beta'

const BETA_HEADER_VALUE = 'realtime=v1'
const BETA_PROTOCOL = 'openai-beta.realtime-v1'

const GA_KEYS = ['output_modalities', 'audio'] as const
const BETA_KEYS = [
  'modalities',
  'voice',
  'input_audio_format',
  'output_audio_format',
  'input_audio_transcription',
  'input_audio_noise_reduction',
  'turn_detection',
  'temperature',
  'speed',
  'max_response_output_tokens',
] as const

interface Handshake {
  /** The value of the `OpenAI-Beta` header. */
  readonly betaHeader: string | undefined
  /** What the client offers in `Sec-WebSocket-Protocol`. */
  readonly protocols: readonly string[]
  /** The dialect of clients that show none; `auto` = the specification's, and `session.created` in both. */
  readonly assumed?: RealtimeDialect | 'auto'
}

/**
 * Detects the dialect of a client. The handshake may name beta; otherwise the first event that only one dialect has
 * decides, for good. Until then the client is treated as `assumed` says.
 */
export class ClientDialect {
  private constructor(
    private known: RealtimeDialect | undefined,
    private readonly assumed: RealtimeDialect | 'auto',
  ) {}

  static ofHandshake({ betaHeader = '', protocols, assumed = 'auto' }: Handshake): ClientDialect {
    const features = betaHeader.split(',').map((feature) => feature.trim().toLowerCase())
    const isBeta = features.includes(BETA_HEADER_VALUE) || protocols.includes(BETA_PROTOCOL)
    return new ClientDialect(isBeta ? 'beta' : undefined, assumed)
  }

  static of(dialect: RealtimeDialect): ClientDialect {
    return new ClientDialect(dialect, 'auto')
  }

  /** The dialect that the client has shown. */
  get dialect(): RealtimeDialect | undefined {
    return this.known
  }

  /** The dialect that its events are written in. */
  get spoken(): RealtimeDialect {
    return this.known ?? (this.assumed === 'auto' ? 'beta' : this.assumed)
  }

  /** Whether nothing says yet which dialect the client reads. */
  get isOpen(): boolean {
    return this.known === undefined && this.assumed === 'auto'
  }

  /** Takes the dialect that an accepted event shows; the first one decides. */
  learn(shown: RealtimeDialect | undefined): void {
    this.known ??= shown
  }
}

/** The dialect that the fields of a client event belong to; `undefined` when both dialects have them. */
export function dialectShownBy(type: string, fields: Readonly<Record<string, unknown>>): RealtimeDialect | undefined {
  if (type === 'transcription_session.update') return 'beta'
  if (type === 'session.update') {
    const session = fields['session']
    return isRecord(session) && session['type'] !== undefined ? 'ga' : dialectOfKeys(session)
  }
  return type === 'response.create' ? dialectOfKeys(fields['response']) : undefined
}

function dialectOfKeys(value: unknown): RealtimeDialect | undefined {
  if (!isRecord(value)) return undefined
  if (GA_KEYS.some((key) => Object.hasOwn(value, key))) return 'ga'
  return BETA_KEYS.some((key) => Object.hasOwn(value, key)) ? 'beta' : undefined
}

/** The event after editing the object in that member; the same frame when there is no such object. */
export function withObject(frame: Buffer, name: string, edit: (object: RawObject, event: RawObject) => void): Buffer {
  const event = RawObject.parse(frame)
  const object = event?.object(name)
  if (event === undefined || object === undefined) return frame
  edit(object, event)
  return event.toBuffer()
}

/** The event with that member edited and, if one is given, a new type; the same frame when neither changes. */
export function withMember(frame: Buffer, name: string, edit: (value: Buffer) => Buffer, newType?: string): Buffer {
  const event = RawObject.parse(frame)
  const value = event?.get(name)
  const changed = value === undefined ? value : edit(value)
  if (event === undefined || (changed === value && newType === undefined)) return frame
  if (changed !== undefined) event.set(name, changed)
  if (newType !== undefined) event.setText('type', newType)
  return event.toBuffer()
}

type Names = ReadonlyMap<string, string>

const PAIRS: readonly (readonly [beta: string, ga: string])[] = [
  ['response.text.delta', 'response.output_text.delta'],
  ['response.text.done', 'response.output_text.done'],
  ['response.audio_transcript.delta', 'response.output_audio_transcript.delta'],
  ['response.audio_transcript.done', 'response.output_audio_transcript.done'],
  ['response.audio.delta', 'response.output_audio.delta'],
  ['response.audio.done', 'response.output_audio.done'],
]

/** Server events whose names alone differ. */
export const NAMES_TO_GA: Names = new Map(PAIRS)
export const NAMES_TO_BETA: Names = new Map(PAIRS.map(([beta, ga]) => [ga, beta]))

/** JSON text of a member; a string for the client's own spelling of its modalities. */
type JsonText = Buffer | string

const GA_AUDIO = '["audio"]'
const GA_TEXT = '["text"]'
const BETA_AUDIO = '["audio","text"]'

/** GA responds in audio (which includes the transcript) or in text, never in both. Other values stay. */
export function modalitiesToGa(value: Buffer): JsonText {
  const modalities = modalitiesOf(value)
  if (modalities === undefined || modalities.length === 0) return value
  return modalities.includes('audio') ? GA_AUDIO : GA_TEXT
}

/** Returns the client's own spelling when one of them means the same, otherwise beta's. */
export function modalitiesToBeta(value: Buffer, clientSpellings: readonly (string | undefined)[] = []): JsonText {
  const modalities = modalitiesOf(value)
  if (modalities === undefined || modalities.length === 0) return value
  const hasAudio = modalities.includes('audio')
  const spelling = clientSpellings.find((text) => text !== undefined && text.includes('"audio"') === hasAudio)
  return spelling ?? (hasAudio ? BETA_AUDIO : GA_TEXT)
}

function modalitiesOf(value: Buffer): unknown[] | undefined {
  try {
    const modalities: unknown = JSON.parse(value.toString())
    return Array.isArray(modalities) ? modalities : undefined
  } catch {
    return undefined
  }
}
