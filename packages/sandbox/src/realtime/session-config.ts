import { fieldOf, isObject, type JsonObject, listOf, objectsOf, textOf } from '../server/json-value.js'
import type { AudioFormat } from './audio-format.js'
import type { RealtimeDialect } from './realtime-dialect.js'

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
export function sessionFacts(dialect: RealtimeDialect, session: JsonObject): SessionFacts {
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
