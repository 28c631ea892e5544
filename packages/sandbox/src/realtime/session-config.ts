import { fieldOf, isObject, type JsonObject, listOf, objectsOf, textOf } from '../server/json-value.js'
import type { AudioFormat } from './audio-format.js'
import type { RealtimeDialect } from './realtime-dialect.js'
import { betaDefaults, betaSession, gaDefaults, gaSession } from './session-rules.js'
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
  readonly model: string
  /** Unix seconds. */
  readonly expiresAt: number
}

/** The session object of one connection, in the dialect of that connection. */
export class SessionState {
  #session: JsonObject
  #facts: SessionFacts

  constructor(
    private readonly dialect: RealtimeDialect,
    identity: SessionIdentity,
  ) {
    const { id, model, expiresAt } = identity
    const head = dialect === 'ga' ? { type: 'realtime', object: 'realtime.session' } : { object: 'realtime.session' }
    this.#session = { ...head, id, model, expires_at: expiresAt, ...(dialect === 'ga' ? gaDefaults : betaDefaults) }
    this.#facts = sessionFacts(dialect, this.#session)
  }

  get object(): JsonObject {
    return this.#session
  }

  get facts(): SessionFacts {
    return this.#facts
  }

  /**
   * Applies the `session` of a `session.update`: only what is given changes. `voiceIsFixed` once the model has spoken.
   * Throws RealtimeRejection and changes nothing when anything is wrong.
   */
  update(change: unknown, voiceIsFixed: boolean): void {
    const check = this.dialect === 'ga' ? gaSession : betaSession
    const checked = check(change, 'session') as JsonObject
    this.#refuseChanges(checked, voiceIsFixed)
    this.#session = merge(this.#session, checked)
    this.#facts = sessionFacts(this.dialect, this.#session)
  }

  #refuseChanges(change: JsonObject, voiceIsFixed: boolean): void {
    if (change['type'] === 'transcription') {
      const message = 'Passing a transcription session update event to a realtime session is not allowed.'
      throw new RealtimeRejection('invalid_session_type', message, 'session.type')
    }
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

/** Only the `audio` tree is merged member by member; everything else is replaced as a whole. */
function merge(session: JsonObject, change: JsonObject): JsonObject {
  const audio = session['audio']
  const newAudio = change['audio']
  if (!isObject(audio) || !isObject(newAudio)) return { ...session, ...change }
  const side = (name: string): object => ({ ...part(audio[name]), ...part(newAudio[name]) })
  return { ...session, ...change, audio: { input: side('input'), output: side('output') } }
}

function part(value: unknown): JsonObject {
  return isObject(value) ? value : {}
}
