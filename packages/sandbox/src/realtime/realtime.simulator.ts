import { randomBytes } from 'node:crypto'
import { judgeBearer, OpenAiRejection, unknownModel } from '../server/openai-errors.js'
import { type RecordedRequest, recordHeaderViolations } from '../server/recorded-request.js'
import { ServedLedger } from '../server/served-usage.js'
import type {
  HandshakeAdmission,
  HandshakeRefusal,
  SocketProtocol,
  SocketSimulator,
  SocketSimulatorOptions,
} from '../server/websocket-protocol.js'
import { startSocketSimulator } from '../server/websocket-server.js'
import type { SocketSession } from '../server/websocket-session.js'
import { SESSION_MINUTES, unknownWords } from './fault-injection.js'
import type { RealtimeContext, RealtimeDialect, SessionKind } from './realtime-dialect.js'
import { RealtimeSession } from './realtime-session.js'
import { EventSender, RealtimeRecord } from './server-events.js'
import { RealtimeRejection } from './validation.js'

export const REALTIME_PATH = '/v1/realtime'

const BETA_HEADER = 'realtime=v1'
const BETA_SUBPROTOCOL = 'openai-beta.realtime-v1'
const KEY_SUBPROTOCOL = 'openai-insecure-api-key.'
const BAD_KEY = 3000
const BAD_REQUEST = 4000

/** Judges an upgrade request. What the upstream would say only after it is left to `refusalAfterOpen`. */
function admitRealtime(session: SocketSession, context: RealtimeContext): HandshakeAdmission | HandshakeRefusal {
  const { handshake } = session
  recordHeaderViolations(handshake, 'authorization')
  const offered = subprotocolsOf(handshake)
  if (offered.some((name) => name.startsWith(KEY_SUBPROTOCOL))) session.violations.push('a key among the subprotocols')
  try {
    judgeHandshake(handshake, context)
  } catch (error) {
    if (!(error instanceof OpenAiRejection)) throw error
    const headers = { ...answerHeaders(), 'content-type': 'application/json', ...error.details.headers }
    return { admitted: false, status: error.status, headers, body: `${JSON.stringify(error.body, null, 2)}\n` }
  }
  const chosen = offered.includes('realtime') ? { subprotocol: 'realtime' } : {}
  return { admitted: true, headers: answerHeaders(), ...chosen }
}

/** The error event and close code that a connection gets instead of a session; undefined when it gets one. */
function refusalAfterOpen(
  handshake: RecordedRequest,
  context: RealtimeContext,
): { readonly rejection: RealtimeRejection; readonly closeCode: number } | undefined {
  const refuse = (code: string, message: string, closeCode = BAD_REQUEST): ReturnType<typeof refusalAfterOpen> => ({
    rejection: new RealtimeRejection(code, message),
    closeCode,
  })
  if (context.wrongKey === 'event' && !hasRightKey(handshake, context)) {
    return refuse('invalid_api_key', 'Incorrect API key provided.', BAD_KEY)
  }
  if (context.dialect === 'ga' && isBeta(handshake)) {
    const advice = 'Please use /v1/realtime for the GA API.'
    return refuse('beta_api_shape_disabled', `The Realtime Beta API is no longer supported. ${advice}`)
  }
  if (context.dialect === 'beta' && !isBeta(handshake)) {
    return refuse('missing_beta_header', `You must provide the header 'OpenAI-Beta: ${BETA_HEADER}'.`)
  }
  const model = modelOf(handshake)
  if (kindOf(handshake) === 'transcription') {
    if (model === '') return undefined
    return refuse('invalid_model', 'You must not provide a model parameter for transcription sessions.')
  }
  if (model.includes('realtime') || model.startsWith('missing-')) return undefined
  return refuse('invalid_model', `Model "${model}" is not supported in realtime mode.`)
}

function modelOf(handshake: RecordedRequest): string {
  return handshake.query.get('model') ?? ''
}

const kindOf = ({ query }: RecordedRequest): SessionKind =>
  query.get('intent') === 'transcription' ? 'transcription' : 'conversation'

function judgeHandshake(handshake: RecordedRequest, context: RealtimeContext): void {
  const { path, query, method } = handshake
  if (path !== REALTIME_PATH) throw new OpenAiRejection(404, `Invalid URL (${method} ${path})`)
  const key = bearerOf(handshake)
  const wished = /^status-(\d{3})$/.exec(key ?? '')?.[1] ?? /^status-(\d{3})$/.exec(modelOf(handshake))?.[1]
  if (wished !== undefined) throw rejectionOf(Number(wished), modelOf(handshake))
  if (context.wrongKey === 'handshake' || key === undefined) {
    judgeBearer(handshake.headers['authorization'], context.apiKey)
  }
  const isTranscription = kindOf(handshake) === 'transcription'
  if (isTranscription && query.getAll('model').length + query.getAll('call_id').length === 0) return
  if (query.getAll('model').length + query.getAll('call_id').length !== 1 || modelOf(handshake) === '') {
    throw new OpenAiRejection(400, 'You must provide exactly one of model and call_id.', { param: 'model' })
  }
}

/** Keys and models of the form `status-403` name the HTTP status they get. */
function rejectionOf(status: number, model: string): OpenAiRejection {
  switch (status) {
    case 401:
      return new OpenAiRejection(401, 'Incorrect API key provided: statu***01.', { code: 'invalid_api_key' })
    case 403:
      return new OpenAiRejection(403, `Project \`proj_simulated\` does not have access to model \`${model}\``, {
        code: 'model_not_found',
      })
    case 404:
      return unknownModel(model)
    case 429:
      return new OpenAiRejection(429, 'Rate limit reached for sessions. Please try again in 2s.', {
        type: 'requests',
        code: 'rate_limit_exceeded',
        headers: { 'retry-after': '2' },
      })
    default:
      return new OpenAiRejection(status, 'The server had an error while processing your request. Sorry about that!', {
        type: 'server_error',
      })
  }
}

function hasRightKey(handshake: RecordedRequest, { apiKey }: RealtimeContext): boolean {
  const key = bearerOf(handshake)
  return apiKey === undefined ? key !== 'bad' : key === apiKey
}

function bearerOf(handshake: RecordedRequest): string | undefined {
  return /^Bearer (\S+)$/.exec(handshake.headers['authorization'] ?? '')?.[1]
}

function isBeta(handshake: RecordedRequest): boolean {
  return handshake.headers['openai-beta'] === BETA_HEADER || subprotocolsOf(handshake).includes(BETA_SUBPROTOCOL)
}

function subprotocolsOf(handshake: RecordedRequest): readonly string[] {
  return (handshake.headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim())
}

/** Some are for the account's owner only, so that a test can prove that a relay drops them. */
function answerHeaders(): Record<string, string> {
  return {
    'x-request-id': `req_${randomBytes(16).toString('hex')}`,
    'openai-organization': 'org-simulated',
    'openai-project': 'proj_simulated',
    'set-cookie': '__cf_bm=simulated; path=/; HttpOnly; Secure; SameSite=None',
    server: 'cloudflare',
  }
}

/** 15 MiB of audio in base64, and the JSON around it. */
export const MAXIMUM_EVENT_BYTES = 21 * 1024 * 1024

export interface RealtimeOptions {
  /** The only accepted key. Default: every key but `bad`. */
  readonly apiKey?: string
  readonly dialect: RealtimeDialect
  /** Where sessions note what they have served. Default: a ledger of their own. */
  readonly served?: ServedLedger
  /** What a wrong key gets: an HTTP 401 (default), or an error event and close 3000. Both have been seen. */
  readonly wrongKey?: 'handshake' | 'event'
  /** Pause before each delta in milliseconds, default 0. */
  readonly paceMs?: number
  /** Default 60 minutes (ga) or 30 (beta). */
  readonly sessionMaximumMs?: number
}

/** Sessions in detail; `recordOf` knows each as soon as it is open. */
export interface RealtimeRecords {
  readonly recordOf: (session: SocketSession | undefined) => RealtimeRecord
}

export interface RealtimeSimulatorOptions extends SocketSimulatorOptions, RealtimeOptions {}

export type RealtimeSimulator = SocketSimulator & RealtimeRecords

/** Starts the realtime upstream of one dialect: `GET /v1/realtime?model=…`, or `?intent=transcription`. */
export async function startRealtimeSimulator(options: RealtimeSimulatorOptions): Promise<RealtimeSimulator> {
  const protocol = realtimeProtocol(options)
  const simulator = await startSocketSimulator(protocol, { maximumMessageBytes: MAXIMUM_EVENT_BYTES, ...options })
  return Object.assign(simulator, { recordOf: protocol.recordOf })
}

/** The protocol alone, for a server that has other things on its port. */
export function realtimeProtocol(options: RealtimeOptions): SocketProtocol & RealtimeRecords {
  const { dialect, served = new ServedLedger() } = options
  const context: RealtimeContext = {
    dialect,
    apiKey: options.apiKey,
    wrongKey: options.wrongKey ?? 'handshake',
    paceMs: options.paceMs ?? 0,
    sessionMaximumMs: options.sessionMaximumMs ?? SESSION_MINUTES[dialect] * 60_000,
  }
  const records = new WeakMap<SocketSession, RealtimeRecord>()
  return {
    admit: (session) => admitRealtime(session, context),
    converse: async (session) => {
      const record = new RealtimeRecord(dialect, modelOf(session.handshake), session.handshake.query, served)
      records.set(session, record)
      await converse(session, context, record)
    },
    recordOf: (session) => {
      const record = session === undefined ? undefined : records.get(session)
      if (record === undefined) throw new Error('this session never opened')
      return record
    },
  }
}

async function converse(session: SocketSession, context: RealtimeContext, record: RealtimeRecord): Promise<void> {
  const slips = unknownWords(session.faultWords)
  if (slips.length > 0) throw new Error(`queued fault knows no ${slips.join(' ')}`)
  const refusal = refusalAfterOpen(session.handshake, context)
  if (refusal === undefined) return new RealtimeSession(session, context, record, kindOf(session.handshake)).run()
  await new EventSender(session, context.dialect, record).refuse(refusal.rejection, null)
  session.clientMayLeave = true
  session.close(refusal.closeCode, `${refusal.rejection.type}.${refusal.rejection.code}`)
}
