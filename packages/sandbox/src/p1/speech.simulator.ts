import { synthesizeSpeech } from '../audio/speech-synthesizer.js'
import type { Exchange } from '../server/exchange.js'
import { estimateTokens, fillerBytes, numberWord } from '../server/generated-text.js'
import { fieldOf, isObject, type JsonObject, textOf } from '../server/json-value.js'
import { type OpenAiFaultOptions, openAiFaults, reject } from '../server/openai-errors.js'
import type { Frame } from '../server/response-stream.js'
import type { ServedUnits } from '../server/served-usage.js'
import { answerJson } from './json-request.js'
import { p1Headers } from './p1-context.js'
import { type P1Family, speechFamily } from './p1-models.js'

/** Refuses in the speech endpoint's way: the message is a Python list printed as text, and it echoes the input. */
function invalid(type: string, field: string, message: string, input: unknown, context?: string): never {
  const ctx = context === undefined ? '' : `, 'ctx': ${context}`
  const entry = `'type': ${quoted(type)}, 'loc': ('body', ${quoted(field)}), 'msg': ${quoted(message)}`
  reject(`[{${entry}, 'input': ${python(input)}${ctx}}]`)
}

/** Choices as Python prints them: `'a', 'b' or 'c'`. */
function pythonList(values: readonly string[]): string {
  const texts = values.map((value) => `'${value}'`)
  return texts.length < 2 ? texts.join('') : `${texts.slice(0, -1).join(', ')} or ${texts.at(-1) ?? ''}`
}

/** A string as Python prints it: in single quotes unless it contains some. */
function quoted(text: string): string {
  const escaped = text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('\r', '\\r').replaceAll('\t', '\\t')
  if (!escaped.includes("'")) return `'${escaped}'`
  return escaped.includes('"') ? `'${escaped.replaceAll("'", "\\'")}'` : `"${escaped}"`
}

function python(value: unknown): string {
  if (value === null || value === undefined) return 'None'
  if (typeof value === 'string') return quoted(value)
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (Array.isArray(value)) return `[${value.map(python).join(', ')}]`
  if (!isObject(value)) return JSON.stringify(value)
  const pairs = Object.entries(value).map(([key, entry]) => `${quoted(key)}: ${python(entry)}`)
  return `{${pairs.join(', ')}}`
}

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
interface SpeechRequest {
  readonly model: string
  readonly input: string
  readonly format: SpeechFormat
  readonly speed: number
  /** Event stream wanted and supported: the tts-1 family ignores the wish. */
  readonly events: boolean
}

/** Judges a speech request as strictly as the upstream. Throws OpenAiRejection. */
function judgeSpeechRequest(body: JsonObject): SpeechRequest {
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

const BODY_LIMIT_BYTES = 1024 * 1024
const CONTENT_TYPES = {
  mp3: 'audio/mpeg',
  opus: 'audio/opus',
  aac: 'audio/aac',
  flac: 'audio/flac',
  wav: 'audio/wav',
  pcm: 'audio/pcm',
} as const
/** Bytes of one piece of `#bytes=N`, a multiple of 3 so that base64 pieces need no padding. */
const FLAT_PIECE_BYTES = 49_152
/** Audio tokens are counted by size. */
const BYTES_PER_TOKEN = 1600

/** POST /v1/audio/speech. */
export async function serveSpeech(exchange: Exchange): Promise<void> {
  const headers = p1Headers(exchange, { tokenLimits: true })
  const options: OpenAiFaultOptions = { headers, render: (body) => JSON.stringify(body), lineEnd: '\r\n' }
  const callerText = ({ input }: JsonObject): string => textOf(input)
  const answer = (body: JsonObject): Promise<void> => speak(exchange, judgeSpeechRequest(body), options)
  await answerJson(exchange, options, callerText, answer, BODY_LIMIT_BYTES)
}

async function speak(exchange: Exchange, request: SpeechRequest, options: OpenAiFaultOptions): Promise<void> {
  const flatBytes = numberWord(request.input, 'bytes')
  const { format, speed } = request
  const audio =
    flatBytes === undefined
      ? synthesizeSpeech(request.input, { format, speed })
      : fillerBytes(flatBytes, FLAT_PIECE_BYTES)
  if (!request.events) {
    let written = 0
    await exchange.stream(200, { ...options.headers, 'content-type': CONTENT_TYPES[format] }, audio, undefined, () => {
      written += 1
    })
    if (written > 0) exchange.serve(request.model, { characters: Array.from(request.input).length })
    return
  }
  const headers = {
    ...options.headers,
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
  }
  const tally = new SpeechTally(request.input)
  await exchange.stream(200, headers, speechEvents(request.input, audio), openAiFaults(options), tally.note)
  exchange.serve(request.model, tally.units)
}

/** Each delta decodes on its own; the usage comes once, at the end. */
function* speechEvents(input: string, audio: Iterable<Buffer>): Generator<string> {
  let bytes = 0
  for (const piece of audio) {
    bytes += piece.length
    yield frame({ type: 'speech.audio.delta', audio: piece.toString('base64') })
  }
  const input_tokens = estimateTokens(input)
  const output_tokens = Math.ceil(bytes / BYTES_PER_TOKEN)
  const usage = { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens }
  yield frame({ type: 'speech.audio.done', usage })
  yield 'data: [DONE]\r\n\r\n'
}

/** Tokens of the events written so far. */
class SpeechTally {
  #bytes = 0

  constructor(private readonly input: string) {}

  readonly note = (frame: Frame): void => {
    const audio = /"audio":"([^"]*)"\}\r/.exec(frame.toString())?.[1]
    this.#bytes += Buffer.from(audio ?? '', 'base64').length
  }

  get units(): ServedUnits {
    if (this.#bytes === 0) return {}
    return { promptTokens: estimateTokens(this.input), completionTokens: Math.ceil(this.#bytes / BYTES_PER_TOKEN) }
  }
}

function frame(event: object): string {
  return `data: ${JSON.stringify(event)}\r\n\r\n`
}
