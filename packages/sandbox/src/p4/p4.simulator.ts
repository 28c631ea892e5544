import { randomBytes } from 'node:crypto'
import type { Exchange } from '../server/exchange.js'
import { recordHeaderViolations } from '../server/forwarded-headers.js'
import { type OpenAiFaultOptions, openAiFaults, renderRejection } from '../server/openai-errors.js'
import { judgeBearer, OpenAiRejection } from '../server/openai-rejection.js'
import { startSimulator } from '../server/simulator-server.js'
import type { Simulator, SimulatorOptions } from '../server/simulator.js'
import { transcriptUnits } from '../server/token-units.js'
import { transcribe } from '../transcription/transcript.js'
import { readForm, type TranscriptionForm, UPLOAD_LIMIT_BYTES } from '../transcription/transcription-form.js'
import { durationUsage } from '../transcription/whisper-formats.js'
import { p4Body } from './p4-answer.js'
import { judgeP4Form, type P4Mode } from './p4-request.js'

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
    if (!(error instanceof OpenAiRejection)) throw error
    const refusal = renderRejection(error, options)
    await exchange.send(refusal.status, refusal.headers, refusal.body)
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
