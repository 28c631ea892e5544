import { createHash, randomBytes } from 'node:crypto'
import type { Exchange } from '../server/exchange.js'
import {
  judgeBearer,
  type OpenAiFaultOptions,
  openAiFaults,
  OpenAiRejection,
  reject,
  sendRejection,
  unknownModel,
} from '../server/openai-errors.js'
import { recordHeaderViolations } from '../server/recorded-request.js'
import { transcriptUnits } from '../server/served-usage.js'
import { type Simulator, type SimulatorOptions, startSimulator } from '../server/simulator-server.js'
import { audioFacts, type AudioFacts } from '../transcription/audio-metadata.js'
import { durationUsage, srt, transcribe, type Transcript, verboseJson, vtt } from '../transcription/transcript.js'
import {
  judgeGranularities,
  judgePartNames,
  judgeTemperature,
  languageName,
  readForm,
  type TranscriptionForm,
  UPLOAD_LIMIT_BYTES,
} from '../transcription/transcription-form.js'

type P4Mode = 'groq' | 'openai'

const RULES = {
  groq: {
    formats: ['json', 'text', 'verbose_json'],
    extensions: ['flac', 'mp3', 'mp4', 'mpeg', 'mpga', 'm4a', 'ogg', 'opus', 'wav', 'webm'],
    parts: ['url'],
    minSeconds: 0.01,
  },
  openai: {
    formats: ['json', 'text', 'srt', 'verbose_json', 'vtt'],
    extensions: ['flac', 'm4a', 'mp3', 'mp4', 'mpeg', 'mpga', 'oga', 'ogg', 'wav', 'webm'],
    parts: [],
    minSeconds: 0.1,
  },
} as const satisfies Record<P4Mode, object>

const COMMON_PARTS = [
  'file',
  'model',
  'language',
  'prompt',
  'response_format',
  'temperature',
  'timestamp_granularities[]',
]
/** Audio behind a URL is not fetched; the simulator pretends to have heard this many seconds. */
const URL_SECONDS = 1

/** A form that was found good. */
interface P4Request {
  readonly task: 'transcribe' | 'translate'
  readonly format: string
  /** Lower-case English name. */
  readonly language: string
  readonly granularities: readonly string[]
  readonly facts: AudioFacts
}

/** Judges a form as the whisper host does. Throws OpenAiRejection. */
function judgeP4Form(form: TranscriptionForm, task: 'transcribe' | 'translate', mode: P4Mode): P4Request {
  const rules = RULES[mode]
  judgeModel(form.text('model') ?? '', task, mode)
  judgePartNames(form, [...COMMON_PARTS, ...rules.parts])
  const format = form.text('response_format') ?? 'json'
  if (!rules.formats.some((name) => name === format)) {
    const allowed = rules.formats.map((name) => `\`${name}\``).join(', ')
    const message = `\`response_format\` must be one of ${allowed}; got '${format}'`
    reject(message, 'response_format', 'unsupported_value')
  }
  judgeTemperature(form)
  const language = judgeLanguage(form, task)
  const granularities = judgeGranularities(form, format)
  return { task, format, language, granularities, facts: judgeAudio(form, mode) }
}

/** Any id that is not `missing-…` and names whisper is taken; turbo models do not translate. */
function judgeModel(model: string, task: 'transcribe' | 'translate', mode: P4Mode): void {
  if (model === '') reject('you must provide a model parameter', mode === 'groq' ? 'model' : null)
  if (model.startsWith('missing-') || !model.includes('whisper')) throw unknownModel(model)
  if (task === 'translate' && model.includes('turbo')) {
    reject(`The model \`${model}\` does not support translation.`, 'model', 'invalid_value')
  }
}

function judgeLanguage(form: TranscriptionForm, task: 'transcribe' | 'translate'): string {
  const code = form.text('language')
  if (code === undefined || task === 'translate') return 'english'
  const name = languageName(code)
  if (name !== undefined) return name
  const message = `Invalid language '${code}'. Language parameter must be specified in ISO-639-1 format.`
  reject(message, 'language', 'invalid_language_format')
}

function judgeAudio(form: TranscriptionForm, mode: P4Mode): AudioFacts {
  const url = mode === 'groq' ? form.text('url') : undefined
  const { file } = form
  if (file === undefined && url !== undefined) return factsOfUrl(url)
  if (file === undefined)
    reject(mode === 'groq' ? '`file` or `url` is required' : "'file' is required", 'file', 'invalid_value')
  if (file.filename === undefined) reject("'file' must be sent with a filename", 'file', 'invalid_value')
  const { extensions, minSeconds } = RULES[mode]
  const extension = file.filename.split('.').at(-1)?.toLowerCase()
  if (!extensions.some((name) => name === extension)) {
    const list = extensions.join(' ')
    reject(`file must be one of the following types: [${list}]`, 'file', 'invalid_value')
  }
  const facts = audioFacts(file)
  if (facts.container === undefined) {
    throw new OpenAiRejection(400, 'could not process file - is it a valid media file?', { code: 'invalid_value' })
  }
  if (facts.seconds < minSeconds) {
    const message = `Audio file is too short. Minimum audio length is ${minSeconds} seconds.`
    reject(message, 'file', 'audio_too_short')
  }
  return facts
}

function factsOfUrl(url: string): AudioFacts {
  if (!/^(https?:\/\/|data:audio\/)/.test(url)) reject('`url` must be a valid URL', 'url', 'invalid_value')
  return { container: 'wav', seconds: URL_SECONDS, sha1: createHash('sha1').update(url).digest('hex') }
}

/** The answer: text for `text`, `srt` and `vtt`, otherwise an object to be sent as JSON. */
function p4Body(request: P4Request, transcript: Transcript, mode: P4Mode): string | object {
  const extra =
    mode === 'groq'
      ? { x_groq: { id: `req_${randomBytes(13).toString('hex')}` } }
      : { usage: durationUsage(transcript.seconds) }
  // This host begins the text with a space, as whisper's own segments do.
  const text = ` ${transcript.text}`
  switch (request.format) {
    case 'text':
      return `${text}\n`
    case 'srt':
      return srt(transcript)
    case 'vtt':
      return vtt(transcript)
    case 'verbose_json': {
      const language = mode === 'groq' ? capitalised(request.language) : request.language
      const { task, granularities } = request
      return { ...verboseJson(transcript, { task, granularities, language }), text, ...extra }
    }
    default:
      return { text, ...extra }
  }
}

function capitalised(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1)
}

export interface P4SimulatorOptions extends SimulatorOptions {
  /** The only accepted key. Default: every key but `bad`. */
  readonly apiKey?: string
  /** `groq` (default): no srt/vtt, turbo model, `x_groq`. `openai`: whisper-1 with all five formats. */
  readonly mode?: P4Mode
  /** Path prefix before `/v1`. Default `/openai` in groq mode, none in openai mode. */
  readonly prefix?: string
  /** Refuse bodies without Content-Length with 411. Default false. */
  readonly strictLength?: boolean
}

interface P4Context {
  readonly apiKey: string | undefined
  readonly mode: P4Mode
  readonly prefix: string
  readonly strictLength: boolean
}

/** Starts the whisper-only upstream P4: transcription and translation under `<prefix>/v1/audio`. */
export function startP4Simulator(options: P4SimulatorOptions = {}): Promise<Simulator> {
  const mode = options.mode ?? 'groq'
  const prefix = options.prefix ?? (mode === 'groq' ? '/openai' : '')
  const context = { apiKey: options.apiKey, mode, prefix, strictLength: options.strictLength ?? false }
  return startSimulator((exchange) => serve(exchange, context), options)
}

async function serve(exchange: Exchange, context: P4Context): Promise<void> {
  recordHeaderViolations(exchange.request, 'authorization')
  const options: OpenAiFaultOptions = {
    headers: p4Headers(context.mode),
    render: (body) => JSON.stringify(body),
    lineEnd: '\n',
  }
  const form = await readForm(exchange, UPLOAD_LIMIT_BYTES)
  const prompt = form instanceof OpenAiRejection ? undefined : form.text('prompt')
  try {
    const task = taskOf(exchange, context)
    judgeBearer(exchange.request.headers['authorization'], context.apiKey)
    if (await exchange.answeredByFault(openAiFaults(options), prompt)) return
    judgeLength(exchange, context)
    if (form instanceof OpenAiRejection) throw form
    await answer(exchange, form, task, context, options)
  } catch (error) {
    await sendRejection(exchange, error, options)
  }
}

async function answer(
  exchange: Exchange,
  form: TranscriptionForm,
  task: 'transcribe' | 'translate',
  context: P4Context,
  options: OpenAiFaultOptions,
): Promise<void> {
  const request = judgeP4Form(form, task, context.mode)
  if (exchange.takeErrorFrame()) throw new OpenAiRejection(500, 'Internal server error', { type: 'server_error' })
  const transcript = transcribe(request.facts, task)
  exchange.serve(form.text('model') ?? '', transcriptUnits(durationUsage(transcript.seconds)))
  const body = p4Body(request, transcript, context.mode)
  const type = typeof body === 'string' ? 'text/plain; charset=utf-8' : 'application/json'
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  await exchange.send(200, { ...options.headers, 'content-type': type }, text)
}

function taskOf(exchange: Exchange, context: P4Context): 'transcribe' | 'translate' {
  const { method, path } = exchange.request
  const tail = path.startsWith(context.prefix) ? path.slice(context.prefix.length) : ''
  const task = { '/v1/audio/transcriptions': 'transcribe', '/v1/audio/translations': 'translate' } as const
  const known = Object.entries(task).find(([known]) => known === tail)
  if (known === undefined)
    throw new OpenAiRejection(404, `Unknown request URL: ${method} ${path}.`, { code: 'unknown_url' })
  if (method !== 'POST') throw new OpenAiRejection(405, `Method ${method} is not allowed on ${path}.`)
  return known[1]
}

function judgeLength(exchange: Exchange, context: P4Context): void {
  if (!context.strictLength || exchange.request.headers['content-length'] !== undefined) return
  throw new OpenAiRejection(411, 'Content-Length is required.')
}

function p4Headers(mode: P4Mode): Record<string, string> {
  const id = `req_${randomBytes(13).toString('hex')}`
  return {
    'x-request-id': id,
    'x-ratelimit-limit-requests': '2000',
    'x-ratelimit-remaining-requests': '1999',
    'x-ratelimit-reset-requests': '43.2s',
    'set-cookie': '__cf_bm=simulated; path=/; HttpOnly; Secure',
    server: 'cloudflare',
    ...(mode === 'groq' ? { 'x-groq-region': 'sim' } : { 'openai-version': '2020-10-01' }),
  }
}
