import { randomBytes } from 'node:crypto'
import type { Exchange } from '../server/exchange.js'
import type { FaultDialect } from '../server/faults.js'
import { parseJsonObject, textOf } from '../server/json-value.js'
import { recordHeaderViolations } from '../server/recorded-request.js'
import type { ServedUnits } from '../server/served-usage.js'
import { type Simulator, type SimulatorOptions, startSimulator } from '../server/simulator-server.js'
import { speakP3 } from './p3-audio.js'
import { JSON_TYPE, p3Faults, P3Rejection, P3Words } from './p3-errors.js'
import {
  judgeAccess,
  judgeBody,
  judgeP3Request,
  P3_FORMATS,
  type P3Access,
  type P3Format,
  type P3Request,
  type P3Rules,
  recordQueryViolations,
} from './p3-request.js'
import { P3Answer, type P3File, P3Files } from './p3-response.js'
import { spokenUnits, subtitlesOf, usageCharacters } from './p3-text.js'

export interface P3SimulatorOptions extends SimulatorOptions, P3Access {
  /** Take an unknown `output_format` for `hex` instead of refusing it with 2013. Default false. */
  readonly lenientOutputFormat?: boolean
  /** Formats the models know. Default: all. */
  readonly formats?: readonly P3Format[]
  /** Voices of the account beside the system's own. */
  readonly voices?: readonly string[]
  /** How long links live, default 24 hours. */
  readonly urlLifetimeMs?: number
}

interface P3Context {
  readonly options: P3SimulatorOptions
  readonly rules: P3Rules
  readonly files: P3Files
}

/** What belongs to one request. */
interface P3Call {
  readonly exchange: Exchange
  readonly context: P3Context
  readonly words: P3Words
  readonly traceId: string
  readonly headers: Readonly<Record<string, string>>
}

const ROUTE = '/v1/t2a_v2'
const BODY_LIMIT_BYTES = 1024 * 1024
const DAY_MS = 24 * 60 * 60 * 1000
const PRIVATE_URL = 'http://169.254.169.254/x'
const AUDIO_TYPES: Readonly<Record<P3Format, string>> = {
  mp3: 'audio/mpeg',
  pcm: 'audio/pcm',
  flac: 'audio/flac',
  wav: 'audio/wav',
  opus: 'audio/ogg',
}

/** Starts the speech upstream P3: `POST /v1/t2a_v2`, and the files its answers link to. */
export function startP3Simulator(options: P3SimulatorOptions = {}): Promise<Simulator> {
  const { formats = P3_FORMATS, voices = [], lenientOutputFormat = false, urlLifetimeMs = DAY_MS } = options
  const context: P3Context = {
    options,
    rules: { formats, voices, lenientOutputFormat },
    files: new P3Files(urlLifetimeMs),
  }
  return startSimulator((exchange) => serve(exchange, context), options)
}

async function serve(exchange: Exchange, context: P3Context): Promise<void> {
  const { method, path } = exchange.request
  if (method === 'GET' && path.startsWith('/files/')) {
    // Nothing but queued faults befalls a download.
    if (await exchange.answeredByFault(p3Faults({}, newTraceId(), 1000), undefined)) return
    await context.files.serve(exchange)
  } else if (method === 'POST' && path === ROUTE) await serveSpeech(exchange, context)
  else await exchange.send(404, { 'content-type': 'text/plain' }, '404 page not found')
}

async function serveSpeech(exchange: Exchange, context: P3Context): Promise<void> {
  recordHeaderViolations(exchange.request, 'authorization')
  recordQueryViolations(exchange)
  const bytes = await exchange.readBody(BODY_LIMIT_BYTES)
  const body = bytes === undefined ? undefined : parseJsonObject(bytes)
  const traceId = newTraceId()
  const headers = responseHeaders(traceId)
  const call: P3Call = { exchange, context, traceId, headers, words: new P3Words(textOf(body?.['text'])) }
  try {
    judgeAccess(exchange, context.options)
    if (await exchange.answeredByFault(faultsOf(call), call.words.faultText(body?.['stream'] === true))) return
    if (call.words.refusal !== undefined) throw new P3Rejection(call.words.refusal)
    await speak(call, judgeP3Request(judgeBody(exchange, body), context.rules))
  } catch (error) {
    if (!(error instanceof P3Rejection)) throw error
    if (error.violation !== undefined) exchange.request.violations.push(error.violation)
    await exchange.send(200, { ...headers, 'content-type': JSON_TYPE }, error.body(traceId))
  }
}

async function speak(call: P3Call, request: P3Request): Promise<void> {
  const { exchange, words, traceId } = call
  const audio = speakP3(request)
  const subtitles = subtitleUrl(call, request, audio.lengthMs)
  const answer = new P3Answer({ request, audio, words, traceId, subtitleUrl: subtitles })
  if (request.stream && !words.has('json')) {
    const first = new P3Rejection(words.codeOf('errfirst')).body(traceId)
    const frames = words.has('errfirst') ? [`data: ${first}\n\n`] : answer.events()
    const headers = { ...call.headers, 'content-type': 'text/event-stream' }
    let written = 0
    await exchange.stream(200, headers, frames, faultsOf(call), () => {
      written += 1
    })
    // Charged as a whole, however little of it the caller waited for.
    if (written > 0 && !words.has('errfirst')) exchange.serve(request.model, spokenCharacters(request))
    return
  }
  const headers = { ...call.headers, 'content-type': JSON_TYPE }
  if (exchange.takeErrorFrame()) {
    await exchange.send(200, headers, new P3Rejection(words.codeOf('errmid')).body(traceId))
    return
  }
  const file = { contentType: AUDIO_TYPES[request.format], frames: audio.pieces, flat: audio.flat }
  const body = answer.json(request.outputFormat === 'url' ? publishedUrl(call, request.format, file) : undefined)
  exchange.serve(request.model, spokenCharacters(request))
  if (audio.flat) await exchange.stream(200, headers, body)
  else await exchange.send(200, headers, Buffer.concat(Array.from(body, (piece) => Buffer.from(piece))))
}

const spokenCharacters = ({ text, speed }: P3Request): ServedUnits => ({
  characters: usageCharacters(spokenUnits(text, speed)),
})

function faultsOf({ headers, traceId, words }: P3Call): FaultDialect {
  return p3Faults(headers, traceId, words.codeOf('errmid'))
}

function subtitleUrl(call: P3Call, request: P3Request, lengthMs: number): string | undefined {
  if (request.subtitles === 'none') return undefined
  const units = spokenUnits(request.text, request.speed)
  const content = JSON.stringify(subtitlesOf(units, lengthMs, request.subtitles === 'word'))
  return publishedUrl(call, 'title.json', { contentType: 'application/json', frames: () => [content], flat: false })
}

/** A link to the file, on the host the caller reached us by, unless the text asks for a useless one. */
function publishedUrl(call: P3Call, extension: string, file: P3File): string {
  if (call.words.has('urlprivate')) return PRIVATE_URL
  const path = call.context.files.publish(extension, call.words.has('urldead') ? undefined : file)
  return `http://${call.exchange.request.headers['host'] ?? 'localhost'}${path}`
}

/** Some are for the account's owner only, so a test can prove that a relay drops them. */
function responseHeaders(traceId: string): Record<string, string> {
  return {
    'trace-id': traceId,
    alb_request_id: randomBytes(16).toString('hex'),
    'set-cookie': 'acw_tc=simulated; path=/; HttpOnly; Max-Age=1800',
    server: 'istio-envoy',
  }
}

function newTraceId(): string {
  return randomBytes(16).toString('hex')
}
