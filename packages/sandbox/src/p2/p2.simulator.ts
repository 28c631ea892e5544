import { randomBytes } from 'node:crypto'
import { speechDurationMs } from '../audio/speech-synthesizer.js'
import type { Exchange } from '../server/exchange.js'
import { fieldOf, type JsonObject, parseJsonObject, textOf } from '../server/json-value.js'
import { type RecordedRequest, recordHeaderViolations } from '../server/recorded-request.js'
import { ServedLedger } from '../server/served-usage.js'
import type {
  HandshakeAdmission,
  HandshakeRefusal,
  SocketSimulator,
  SocketSimulatorOptions,
} from '../server/websocket-protocol.js'
import { startSocketSimulator } from '../server/websocket-server.js'
import type { SocketSession } from '../server/websocket-session.js'
import { GRANT_NOT_FOUND, P2Rejection, type P2Word, readWish, unknownWords, violate } from './p2-errors.js'
import { readRequestFrame } from './p2-frames.js'
import { judgeRequest, type P2Context } from './p2-request.js'
import { deliver, fail, speak } from './p2-speech.js'

const BODY_LIMIT_BYTES = 256 * 1024
const SUCCESS = 3000

/** POST /api/v1/tts: the whole speech in one JSON answer. Of the magic words `#err…` and `#bytes=N` apply. */
async function serveQuery(
  exchange: Exchange,
  headers: Readonly<Record<string, string>>,
  context: P2Context,
): Promise<void> {
  const body = await exchange.readBody(BODY_LIMIT_BYTES)
  const json = body === undefined ? undefined : parseJsonObject(body)
  try {
    if (json === undefined) violate('body is not a JSON object')
    const request = judgeRequest(json, context, 'http')
    const { failure, bytes } = readWish(request.text)
    if (failure !== undefined) throw new P2Rejection(failure.code, failure.text)
    const audio = Buffer.concat([...speak(request, bytes)])
    const answer = {
      reqid: request.reqid,
      code: SUCCESS,
      operation: 'query',
      message: 'Success',
      sequence: -1,
      data: audio.toString('base64'),
      addition: { duration: String(Math.round(speechDurationMs(request.text, request.speed))) },
    }
    await exchange.send(200, headers, JSON.stringify(answer))
  } catch (error) {
    if (!(error instanceof P2Rejection)) throw error
    if (error.isViolation) exchange.request.violations.push(error.message)
    const answer = { reqid: '', code: error.code, operation: 'query', message: error.message, sequence: 0, data: '' }
    // Only 3031 with 500 is known from reports; the other statuses follow from whose fault it is.
    const status = [3001, 3006, 3010, 3011, 3050].includes(error.code) ? 400 : 500
    await exchange.send(status, headers, JSON.stringify(answer))
  }
}

const STREAM_PATH = '/api/v1/tts/ws_binary'
const QUERY_PATH = '/api/v1/tts'
/** A semicolon, not a space; the documentation also prints a blank behind it. */
const AUTHORIZATION = /^Bearer; ?([^\s;]+)$/
const JSON_TYPE = 'application/json'
const DEFAULT_GAP_MS = 8500
const DEFAULT_CLOSE_AFTER_MS = 10_000

export interface P2SimulatorOptions extends SocketSimulatorOptions {
  /** The only accepted pair, `APP_ID|ACCESS_TOKEN`. Default: every app id, and every token but `bad`. */
  readonly apiKey?: string
  /** What a wrong token gets: 401 instead of the upgrade (default), or an error frame after the request. */
  readonly wrongToken?: 'handshake' | 'frame'
  /** Voices known beyond the usual ones. */
  readonly voices?: readonly string[]
  /** Stream `wav` instead of refusing it with 3001. Default false. */
  readonly wavAccepted?: boolean
  /** Send an ACK before the audio. Default true. */
  readonly acknowledge?: boolean
  /** Pause between audio frames in milliseconds, default 0. */
  readonly paceMs?: number
  /** Silence of `#slow` in milliseconds, default 8,500. */
  readonly gapMs?: number
  /** How long a client may take to close after the last frame, in milliseconds. Default 10,000. */
  readonly closeAfterMs?: number
}

export type P2Simulator = SocketSimulator & { readonly served: ServedLedger }

/** Starts the ByteDance-like upstream P2: speech over a binary WebSocket, and in one piece over HTTP. */
export function startP2Simulator(options: P2SimulatorOptions = {}): Promise<P2Simulator> {
  const context = makeContext(options)
  const starting = startSocketSimulator(
    {
      admit: (session) => admit(session, context),
      converse: (session) => converse(session, context),
      serve: (exchange) => serve(exchange, context),
    },
    options,
  )
  return starting.then((simulator) => Object.assign(simulator, { served: context.served }))
}

function makeContext(options: P2SimulatorOptions): P2Context {
  const [appId, accessToken, ...rest] = options.apiKey?.split('|') ?? []
  if (options.apiKey !== undefined && (!appId || !accessToken || rest.length > 0)) {
    throw new TypeError('apiKey must be APP_ID|ACCESS_TOKEN')
  }
  return {
    appId,
    accessToken,
    wrongToken: options.wrongToken ?? 'handshake',
    voices: options.voices ?? [],
    wavAccepted: options.wavAccepted ?? false,
    acknowledge: options.acknowledge ?? true,
    paceMs: options.paceMs ?? 0,
    gapMs: options.gapMs ?? DEFAULT_GAP_MS,
    closeAfterMs: options.closeAfterMs ?? DEFAULT_CLOSE_AFTER_MS,
    served: new ServedLedger(),
    usedRequestIds: new Set(),
  }
}

function admit(session: SocketSession, context: P2Context): HandshakeAdmission | HandshakeRefusal {
  const { handshake } = session
  recordHeaderViolations(handshake, 'authorization')
  if (handshake.path !== STREAM_PATH || handshake.query.size > 0) return refuse(404, 'no such path')
  const token = tokenOf(handshake)
  if (token === undefined) return refuse(401, 'invalid authorization header')
  if (context.wrongToken === 'handshake' && !isRightToken(token, context)) return refuse(401, GRANT_NOT_FOUND)
  return { admitted: true, headers: logIdHeader() }
}

async function converse(session: SocketSession, context: P2Context): Promise<void> {
  const slips = unknownWords(session.faultWords)
  if (slips.length > 0) throw new Error(`queued fault knows no ${slips.join(' ')}`)
  const message = await session.nextMessage()
  if (message === undefined) return
  let json: JsonObject | undefined
  try {
    json = readRequestFrame(message)
    session.decoded.push(json)
    if (!isRightToken(tokenOf(session.handshake), context)) throw new P2Rejection(3001, GRANT_NOT_FOUND)
    const request = judgeRequest(json, context, 'socket')
    void refuseSecondRequest(session)
    await deliver(session, request, readWish(`${session.faultWords} ${request.text}`), context)
  } catch (error) {
    if (!(error instanceof P2Rejection)) throw error
    if (error.isViolation) session.violations.push(error.message)
    const failure = { code: error.code, text: error.message }
    await fail(session, failure, textOf(fieldOf(json?.['request'], 'reqid')), errorForm(session))
  }
}

/** One synthesis for each connection. */
async function refuseSecondRequest(session: SocketSession): Promise<void> {
  if ((await session.nextMessage()) === undefined) return
  session.violations.push('a second message on one connection')
  await fail(session, { code: 3001, text: 'one request for each connection' }, '', errorForm(session))
}

async function serve(exchange: Exchange, context: P2Context): Promise<void> {
  recordHeaderViolations(exchange.request, 'authorization')
  const refusal = refusalOfQuery(exchange.request, context)
  if (refusal === undefined) return serveQuery(exchange, { ...logIdHeader(), 'content-type': JSON_TYPE }, context)
  await exchange.send(refusal.status, refusal.headers ?? {}, refusal.body)
}

function refusalOfQuery(request: RecordedRequest, context: P2Context): HandshakeRefusal | undefined {
  if (request.path === STREAM_PATH) return refuse(400, 'not a WebSocket handshake')
  if (request.path !== QUERY_PATH) return refuse(404, 'no such path')
  if (request.method !== 'POST') return refuse(405, 'method not allowed')
  if (!isRightToken(tokenOf(request), context)) return refuse(401, GRANT_NOT_FOUND)
  return undefined
}

function refuse(status: number, message: string): HandshakeRefusal {
  const body = JSON.stringify({ reqid: '', code: 3001, message, sequence: 0 })
  return { admitted: false, status, headers: { ...logIdHeader(), 'content-type': JSON_TYPE }, body }
}

function tokenOf(request: RecordedRequest): string | undefined {
  return AUTHORIZATION.exec(request.headers['authorization'] ?? '')?.[1]
}

function isRightToken(token: string | undefined, context: P2Context): boolean {
  return context.accessToken === undefined ? token !== undefined && token !== 'bad' : token === context.accessToken
}

/** The upstream's trace id: the time to the second, then random. */
function logIdHeader(): Record<string, string> {
  const time = new Date().toISOString().replace(/\D/g, '').slice(0, 14)
  return { 'x-tt-logid': `${time}${randomBytes(10).toString('hex').toUpperCase()}` }
}

function errorForm(session: SocketSession): ReadonlySet<P2Word> {
  return readWish(session.faultWords).words
}
