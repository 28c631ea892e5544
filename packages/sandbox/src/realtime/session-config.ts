import { fieldOf, isObject, type JsonObject, listOf, objectsOf, textOf } from '../server/json-value.js'
import type { AudioFormat } from './audio-format.js'
import type { RealtimeDialect, SessionKind } from './realtime-dialect.js'
import {
  betaDefaults,
  betaSession,
  betaTranscriptionDefaults,
  betaTranscriptionSession,
  gaDefaults,
  gaSession,
  gaTranscriptionDefaults,
  gaTranscriptionSession,
} from './session-rules.js'
import { isStreaming } from './shared-rules.js'
import { RealtimeRejection } from './validation.js'

/** What a session, or one response of it, is set to: the same words for both dialects. */
export interface SessionFacts {
  readonly instructions: string
  readonly wantsAudio: boolean
  /** A name or `{id}`, as it was given. */
  readonly voice: unknown
  readonly speed: number
  readonly inputFormat: AudioFormat
  readonly outputFormat: AudioFormat
  readonly transcription: JsonObject | null
  readonly wantsLogprobs: boolean
  readonly turnDetection: JsonObject | null
  readonly tools: readonly JsonObject[]
  readonly toolChoice: unknown
  readonly maximumOutputTokens: number | 'inf'
  /** Beta only; GA has no such setting. */
  readonly temperature: number
}

const GA_FORMATS: Readonly<Record<string, AudioFormat>> = {
  'audio/pcm': 'pcm16',
  'audio/pcmu': 'g711_ulaw',
  'audio/pcma': 'g711_alaw',
}

/** The wire's way to name a format. */
export function formatIn(dialect: RealtimeDialect, format: AudioFormat): unknown {
  if (dialect === 'beta') return format
  if (format === 'pcm16') return { type: 'audio/pcm', rate: 24_000 }
  return { type: format === 'g711_ulaw' ? 'audio/pcmu' : 'audio/pcma' }
}

/** The facts of a whole session object that was checked. */
function sessionFacts(dialect: RealtimeDialect, session: JsonObject): SessionFacts {
  const input = fieldOf(session['audio'], 'input')
  const output = fieldOf(session['audio'], 'output')
  const isGa = dialect === 'ga'
  const transcription = isGa ? fieldOf(input, 'transcription') : session['input_audio_transcription']
  const turnDetection = isGa ? fieldOf(input, 'turn_detection') : session['turn_detection']
  return {
    instructions: textOf(session['instructions']),
    wantsAudio: listOf(session[isGa ? 'output_modalities' : 'modalities']).includes('audio'),
    voice: isGa ? fieldOf(output, 'voice') : session['voice'],
    speed: Number(isGa ? fieldOf(output, 'speed') : session['speed']),
    inputFormat: readFormat(isGa ? fieldOf(input, 'format') : session['input_audio_format']),
    outputFormat: readFormat(isGa ? fieldOf(output, 'format') : session['output_audio_format']),
    transcription: isObject(transcription) ? transcription : null,
    wantsLogprobs: listOf(session['include']).length > 0,
    turnDetection: isObject(turnDetection) ? turnDetection : null,
    tools: objectsOf(session['tools']),
    toolChoice: session['tool_choice'],
    maximumOutputTokens: readLimit(session[isGa ? 'max_output_tokens' : 'max_response_output_tokens']),
    temperature: Number(session['temperature'] ?? 0.8),
  }
}

/** The session's facts with those of a checked `response.create` laid over them. */
export function responseFacts(session: SessionFacts, dialect: RealtimeDialect, response: JsonObject): SessionFacts {
  const output = dialect === 'ga' ? fieldOf(response['audio'], 'output') : undefined
  const modalities = response['output_modalities'] ?? response['modalities']
  const format = fieldOf(output, 'format') ?? response['output_audio_format']
  const limit = response['max_output_tokens'] ?? response['max_response_output_tokens']
  return {
    ...session,
    instructions: textOf(response['instructions'] ?? session.instructions),
    wantsAudio: modalities === undefined ? session.wantsAudio : listOf(modalities).includes('audio'),
    voice: fieldOf(output, 'voice') ?? response['voice'] ?? session.voice,
    outputFormat: format === undefined ? session.outputFormat : readFormat(format),
    tools: response['tools'] === undefined ? session.tools : objectsOf(response['tools']),
    toolChoice: response['tool_choice'] ?? session.toolChoice,
    maximumOutputTokens: limit === undefined ? session.maximumOutputTokens : readLimit(limit),
    temperature: Number(response['temperature'] ?? session.temperature),
  }
}

function readFormat(format: unknown): AudioFormat {
  const name = isObject(format) ? GA_FORMATS[textOf(format['type'])] : format
  return name === 'g711_ulaw' || name === 'g711_alaw' ? name : 'pcm16'
}

function readLimit(limit: unknown): number | 'inf' {
  return typeof limit === 'number' ? limit : 'inf'
}

export interface SessionIdentity {
  readonly id: string
  readonly kind: SessionKind
  /** None of a transcription session. */
  readonly model: string
  /** Unix seconds. */
  readonly expiresAt: number
}

const TRANSCRIPTION_OBJECT = 'realtime.transcription_session'

function newSession(dialect: RealtimeDialect, { id, kind, model, expiresAt }: SessionIdentity): JsonObject {
  const isGa = dialect === 'ga'
  if (kind === 'transcription') {
    const head = isGa ? { type: 'transcription', object: TRANSCRIPTION_OBJECT } : { object: TRANSCRIPTION_OBJECT }
    return { ...head, id, expires_at: expiresAt, ...(isGa ? gaTranscriptionDefaults : betaTranscriptionDefaults) }
  }
  const head = isGa ? { type: 'realtime', object: 'realtime.session' } : { object: 'realtime.session' }
  return { ...head, id, model, expires_at: expiresAt, ...(isGa ? gaDefaults : betaDefaults) }
}

const CHECKS = {
  conversation: { ga: gaSession, beta: betaSession },
  transcription: { ga: gaTranscriptionSession, beta: betaTranscriptionSession },
}

/** The session object of one connection, in the dialect of that connection. */
export class SessionState {
  #session: JsonObject
  #facts: SessionFacts

  constructor(
    private readonly dialect: RealtimeDialect,
    private readonly identity: SessionIdentity,
  ) {
    this.#session = newSession(dialect, identity)
    this.#facts = sessionFacts(dialect, this.#session)
  }

  get object(): JsonObject {
    return this.#session
  }

  get facts(): SessionFacts {
    return this.#facts
  }

  /**
   * Applies the `session` of an update: only what is given changes. `voiceIsFixed` once the model has spoken. Throws
   * RealtimeRejection and changes nothing when anything is wrong.
   */
  update(change: unknown, voiceIsFixed: boolean): void {
    const { kind } = this.identity
    // A session of the wrong type is refused as such, whatever else it has.
    if (this.dialect === 'ga') refuseOtherType(kind, change)
    const checked = CHECKS[kind][this.dialect](change, 'session') as JsonObject
    if (kind === 'conversation') this.#refuseChanges(checked, voiceIsFixed)
    const merged = merge(this.#session, checked)
    this.#session = kind === 'transcription' ? this.#withoutTurns(merged, checked) : merged
    this.#facts = sessionFacts(this.dialect, this.#session)
  }

  /** Models that hear without a pause have no turn detection: asking for one is refused, the default gives way. */
  #withoutTurns(session: JsonObject, change: JsonObject): JsonObject {
    const { transcription } = sessionFacts(this.dialect, session)
    if (!isStreaming(transcription?.['model'])) return session
    const isGa = this.dialect === 'ga'
    const given = isGa ? fieldOf(fieldOf(change['audio'], 'input'), 'turn_detection') : change['turn_detection']
    if (isObject(given)) {
      const path = isGa ? 'session.audio.input.turn_detection' : 'session.turn_detection'
      const message = 'Turn detection is not supported for this transcription model.'
      throw new RealtimeRejection('invalid_value', message, path)
    }
    return merge(session, isGa ? { audio: { input: { turn_detection: null } } } : { turn_detection: null })
  }

  #refuseChanges(change: JsonObject, voiceIsFixed: boolean): void {
    if (change['model'] !== undefined && change['model'] !== this.#session['model']) {
      throw new RealtimeRejection('invalid_value', "Cannot update a session's model.", 'session.model')
    }
    const isGa = this.dialect === 'ga'
    const voice = isGa ? fieldOf(fieldOf(change['audio'], 'output'), 'voice') : change['voice']
    if (!voiceIsFixed || voice === undefined) return
    if (JSON.stringify(voice) === JSON.stringify(this.facts.voice)) return
    const message = "Cannot update a conversation's voice if assistant audio is present."
    throw new RealtimeRejection('cannot_update_voice', message, isGa ? 'session.audio.output.voice' : 'session.voice')
  }
}

/** The words for an update that is meant for a session of the other kind. */
export function otherKind(kind: SessionKind, param: string): RealtimeRejection {
  const [given, own] = kind === 'transcription' ? ['realtime', 'transcription'] : ['transcription', 'realtime']
  const message = `Passing a ${given} session update event to a ${own} session is not allowed.`
  return new RealtimeRejection('invalid_session_type', message, param)
}

function refuseOtherType(kind: SessionKind, change: unknown): void {
  const type = fieldOf(change, 'type')
  if (type === (kind === 'transcription' ? 'realtime' : 'transcription')) throw otherKind(kind, 'session.type')
}

/** Only the `audio` tree is merged member by member; everything else is replaced as a whole. */
function merge(session: JsonObject, change: JsonObject): JsonObject {
  const audio = session['audio']
  const newAudio = change['audio']
  if (!isObject(audio) || !isObject(newAudio)) return { ...session, ...change }
  const side = (name: string): object => ({ ...part(audio[name]), ...part(newAudio[name]) })
  const sides = Object.keys({ ...audio, ...newAudio }).map((name) => [name, side(name)])
  return { ...session, ...change, audio: Object.fromEntries(sides) as JsonObject }
}

function part(value: unknown): JsonObject {
  return isObject(value) ? value : {}
}
