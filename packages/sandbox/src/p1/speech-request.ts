import { fieldOf, isObject, type JsonObject, textOf } from '../server/json-value.js'
import { estimateTokens } from '../server/magic-text.js'
import { reject } from '../server/openai-rejection.js'
import { type P1Family, speechFamily } from './p1-models.js'
import { invalid, pythonList, quoted } from './validation-list.js'

const SIX_AND_THREE = ['alloy', 'ash', 'coral', 'echo', 'fable', 'onyx', 'nova', 'sage', 'shimmer'] as const
/** Voices by model family (section 2.2 of the audio notes). */
const VOICES: Readonly<Partial<Record<P1Family, readonly string[]>>> = {
  tts: SIX_AND_THREE,
  'tts-style': [...SIX_AND_THREE, 'ballad', 'verse', 'marin', 'cedar'],
}
const SPEECH_FORMATS = ['mp3', 'opus', 'aac', 'flac', 'wav', 'pcm'] as const
const FIELDS = ['model', 'input', 'voice', 'instructions', 'response_format', 'speed', 'stream_format']
const MAX_CHARACTERS = 4096
const MAX_STYLE_TOKENS = 2000

export type SpeechFormat = (typeof SPEECH_FORMATS)[number]

/** A speech request that was found good. */
export interface SpeechRequest {
  readonly model: string
  readonly input: string
  readonly format: SpeechFormat
  readonly speed: number
  /** Event stream wanted and supported: the tts-1 family ignores the wish. */
  readonly events: boolean
}

/** Judges a speech request as strictly as the upstream. Throws OpenAiRejection. */
export function judgeSpeechRequest(body: JsonObject): SpeechRequest {
  const model = body['model']
  if (model === undefined || model === '') reject('you must provide a model parameter')
  if (typeof model !== 'string') invalid('string_type', 'model', 'Input should be a valid string', model)
  const family = speechFamily(model)
  for (const [name, value] of Object.entries(body)) {
    if (!FIELDS.includes(name)) invalid('extra_forbidden', name, 'Extra inputs are not permitted', value)
  }
  const input = judgeText(body, 'input')
  if (input === '') {
    invalid('string_too_short', 'input', 'String should have at least 1 character', '', "{'min_length': 1}")
  }
  if (body['instructions'] !== undefined) judgeText(body, 'instructions')
  judgeVoice(body['voice'], VOICES[family] ?? [])
  const format = judgeEnum(body, 'response_format', SPEECH_FORMATS, 'mp3')
  const streamFormat = judgeEnum(body, 'stream_format', ['audio', 'sse'] as const, 'audio')
  const speed = judgeSpeed(body['speed'])
  if (family === 'tts-style') judgeTokens(input)
  return { model, input, format, speed, events: streamFormat === 'sse' && family === 'tts-style' }
}

function judgeText(body: JsonObject, name: string): string {
  const value = body[name]
  if (value === undefined) invalid('missing', name, 'Field required', body)
  if (typeof value !== 'string') invalid('string_type', name, 'Input should be a valid string', value)
  if (Array.from(value).length <= MAX_CHARACTERS) return value
  const message = `String should have at most ${MAX_CHARACTERS} characters`
  invalid('string_too_long', name, message, value, `{'max_length': ${MAX_CHARACTERS}}`)
}

function judgeVoice(voice: unknown, voices: readonly string[]): void {
  if (voice === undefined) invalid('missing', 'voice', 'Field required', {})
  if (isObject(voice) && /^voice_\w+$/.test(textOf(fieldOf(voice, 'id'))) && Object.keys(voice).length === 1) return
  if (typeof voice === 'string' && voices.includes(voice)) return
  const expected = pythonList(voices)
  invalid('enum', 'voice', `Input should be ${expected}`, voice, `{'expected': ${quoted(expected)}}`)
}

function judgeEnum<const Value extends string>(
  body: JsonObject,
  name: string,
  allowed: readonly Value[],
  standard: Value,
): Value {
  const value = body[name]
  if (value === undefined) return standard
  const known = allowed.find((entry) => entry === value)
  if (known !== undefined) return known
  const expected = pythonList(allowed)
  invalid('literal_error', name, `Input should be ${expected}`, value, `{'expected': ${quoted(expected)}}`)
}

function judgeSpeed(speed: unknown): number {
  if (speed === undefined) return 1
  if (typeof speed !== 'number') invalid('float_type', 'speed', 'Input should be a valid number', speed)
  if (speed < 0.25) {
    invalid('greater_than_equal', 'speed', 'Input should be greater than or equal to 0.25', speed, "{'ge': 0.25}")
  }
  if (speed > 4) invalid('less_than_equal', 'speed', 'Input should be less than or equal to 4', speed, "{'le': 4.0}")
  return speed
}

function judgeTokens(input: string): void {
  const tokens = estimateTokens(input)
  if (tokens <= MAX_STYLE_TOKENS) return
  const limit = `the maximum input limit of ${MAX_STYLE_TOKENS} tokens. Please shorten your input.`
  reject(`Input of ${tokens} tokens is over ${limit}`, null, 'invalid_value')
}
