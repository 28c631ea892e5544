import type { RealtimeDialect } from '../realtime/realtime-dialect.js'
import { MAXIMUM_EVENT_BYTES, realtimeProtocol, type RealtimeRecords } from '../realtime/realtime.simulator.js'
import type { Exchange } from '../server/exchange.js'
import {
  judgeBearer,
  type OpenAiFaultOptions,
  openAiFaults,
  OpenAiRejection,
  sendRejection,
} from '../server/openai-errors.js'
import { recordHeaderViolations } from '../server/recorded-request.js'
import { ServedLedger } from '../server/served-usage.js'
import { type Simulator, type SimulatorOptions, startSimulator } from '../server/simulator-server.js'
import type { SocketSessions } from '../server/websocket-protocol.js'
import { SocketReception } from '../server/websocket-server.js'
import { serveChat } from './chat.simulator.js'
import { serveEmbeddings } from './embeddings.simulator.js'
import { type P1Context, p1Headers } from './p1-context.js'
import { serveModels } from './p1-models.js'
import { ResponseStore } from './responses-store.js'
import {
  cancelResponse,
  deleteStoredResponse,
  serveInputItems,
  serveInputTokens,
  serveResponses,
  serveStoredResponse,
} from './responses.simulator.js'
import { serveSpeech } from './speech.simulator.js'
import { serveTranscription, serveTranslation } from './transcription.simulator.js'

export interface P1SimulatorOptions extends SimulatorOptions {
  /** The only accepted key. Default: every key but `bad`. */
  readonly apiKey?: string
  /** Answer chat requests with unknown top-level fields instead of refusing them with 400. Default false. */
  readonly acceptUnknownFields?: boolean
  /** What transcription by token takes for a minute of audio. Default 600, as recorded. */
  readonly audioTokensPerMinute?: number
  /** What a response in the background takes: it is queued for half of it. Default 200. */
  readonly backgroundMs?: number
  /** What `/v1/realtime` speaks. Default `ga`, as the real one does since May 2026. */
  readonly realtimeDialect?: RealtimeDialect
}

export interface P1Simulator extends Simulator {
  /** The WebSocket sessions on `/v1/realtime`, with their own queue of faults. */
  readonly realtime: SocketSessions & RealtimeRecords
}

const RECORDED_TOKENS_PER_MINUTE = 600
const BACKGROUND_MS = 200

type Route = (exchange: Exchange, context: P1Context) => Promise<void>

const ROUTES: readonly { readonly method: string; readonly path: RegExp; readonly serve: Route }[] = [
  { method: 'POST', path: /^\/v1\/chat\/completions$/, serve: serveChat },
  { method: 'POST', path: /^\/v1\/responses$/, serve: serveResponses },
  { method: 'POST', path: /^\/v1\/responses\/input_tokens$/, serve: serveInputTokens },
  { method: 'GET', path: /^\/v1\/responses\/[^/]+$/, serve: serveStoredResponse },
  { method: 'DELETE', path: /^\/v1\/responses\/[^/]+$/, serve: deleteStoredResponse },
  { method: 'POST', path: /^\/v1\/responses\/[^/]+\/cancel$/, serve: cancelResponse },
  { method: 'GET', path: /^\/v1\/responses\/[^/]+\/input_items$/, serve: serveInputItems },
  { method: 'POST', path: /^\/v1\/embeddings$/, serve: serveEmbeddings },
  { method: 'POST', path: /^\/v1\/audio\/speech$/, serve: serveSpeech },
  { method: 'POST', path: /^\/v1\/audio\/transcriptions$/, serve: serveTranscription },
  { method: 'POST', path: /^\/v1\/audio\/translations$/, serve: serveTranslation },
  { method: 'GET', path: /^\/v1\/models(\/[^/]+)?$/, serve: serveModels },
]

/**
 * Starts the OpenAI-like upstream P1: chat, responses, embeddings, speech, transcription, translation, the model list and realtime
 * voice under `/v1`.
 */
export async function startP1Simulator(options: P1SimulatorOptions = {}): Promise<P1Simulator> {
  const context: P1Context = {
    apiKey: options.apiKey,
    acceptUnknownFields: options.acceptUnknownFields ?? false,
    audioTokensPerMinute: options.audioTokensPerMinute ?? RECORDED_TOKENS_PER_MINUTE,
    audioAnswers: new Map(),
    backgroundMs: options.backgroundMs ?? BACKGROUND_MS,
    responses: new ResponseStore(),
  }
  const { served = new ServedLedger() } = options
  const protocol = realtimeProtocol({ ...options, served, dialect: options.realtimeDialect ?? 'ga' })
  const reception = new SocketReception(protocol, MAXIMUM_EVENT_BYTES)
  const simulator = await startSimulator((exchange) => serve(exchange, context), { ...options, served }, reception)
  return Object.assign(simulator, { realtime: Object.assign(reception, { recordOf: protocol.recordOf }) })
}

async function serve(exchange: Exchange, context: P1Context): Promise<void> {
  recordHeaderViolations(exchange.request, 'authorization')
  try {
    const route = routeOf(exchange)
    judgeBearer(exchange.request.headers['authorization'], context.apiKey)
    await route(exchange, context)
  } catch (error) {
    if (!(error instanceof OpenAiRejection) || exchange.response.headersSent) throw error
    await exchange.drain()
    // Audio errors are compact, all others printed with indent.
    const isAudio = exchange.request.path.startsWith('/v1/audio/')
    const render = (body: object): string => (isAudio ? JSON.stringify(body) : `${JSON.stringify(body, null, 2)}\n`)
    const options: OpenAiFaultOptions = { headers: p1Headers(exchange, { tokenLimits: false }), render, lineEnd: '\n' }
    if (await exchange.answeredByFault(openAiFaults(options), undefined)) return
    await sendRejection(exchange, error, options)
  }
}

function routeOf(exchange: Exchange): Route {
  const { method, path } = exchange.request
  const candidates = ROUTES.filter((route) => route.path.test(path))
  const route = candidates.find((candidate) => candidate.method === method)
  if (route !== undefined) return route.serve
  if (candidates.length === 0) throw new OpenAiRejection(404, `Invalid URL (${method} ${path})`)
  const hint = '(HINT: Perhaps you meant to use a different HTTP method?)'
  throw new OpenAiRejection(405, `Not allowed to ${method} on ${path}. ${hint}`, { code: 'method_not_supported' })
}
