import { once } from 'node:events'
import { expect } from '@jest/globals'
import { startM1Simulator } from '@multi-model-gateway/sandbox/m1/m1.simulator.js'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator-server.js'
import type { WebSocket } from 'ws'
import type { LimitsResponse } from '../../src/account/account.controller.js'
import {
  CHAT_PATH,
  chatText,
  type RawAnswer,
  type RawRequest,
  sendRaw,
  startGateway,
  type TestGateway,
} from './gateway.js'
import { MESSAGES } from './m1-gateway.js'
import { UPSTREAM_KEY } from './provider-gateways.js'
import { type RealtimeEvent, RealtimeProbe } from './realtime-probe.js'
import { type RealtimeLab, type RealtimeUpstream, startRealtimeLab } from './realtime-upstream.js'

/** `GET /v1/limits` of a key. */
export async function askLimits(url: string, key: string): Promise<LimitsResponse> {
  const { text } = await sendRaw(url, {
    method: 'GET',
    path: '/v1/limits',
    headers: { authorization: `Bearer ${key}` },
  })
  return JSON.parse(text) as LimitsResponse
}

/** Of every request that is sent with `askAs`. */
export const REQUEST_ID = 'mine-1'

export const askAs = (key: string, { url }: { readonly url: string }, request: RawRequest): Promise<RawAnswer> =>
  sendRaw(url, {
    ...request,
    headers: { authorization: `Bearer ${key}`, 'x-request-id': REQUEST_ID, ...request.headers },
  })

/** What a refusal by a limit by the minute is called. */
export const BY_MINUTE = { code: 'rate_limit_exceeded', taskCode: 1302 }

/** The whole body of a refusal by a limit in the dialect of a route. */
export type RefusalBody = (words: {
  readonly message: string
  readonly code: string
  readonly taskCode: number
}) => object

export const inChat: RefusalBody = ({ message, code }) => ({
  error: { message, type: 'rate_limit_error', param: null, code },
})
export const inMessages: RefusalBody = ({ message }) => ({
  type: 'error',
  error: { type: 'rate_limit_error', message },
  request_id: REQUEST_ID,
})
export const inTasks: RefusalBody = ({ message, taskCode }) => ({ code: taskCode, message, request_id: REQUEST_ID })
export const inImages: RefusalBody = ({ message, taskCode }) => ({
  code: taskCode,
  message,
  request_id: REQUEST_ID,
  description: message,
})

/** Whatever tells of limits, or of trying again. */
export const limitHeaders = ({ headers }: Pick<RawAnswer, 'headers'>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => /limit|retry/.test(name)))

const DURATION: unknown = expect.stringMatching(/^(?:1m0s|[1-5]?\ds|[1-9]\d{0,2}ms)$/)
const INSTANT: unknown = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)

/** The headers of one limit in the family of a path. */
export const shownLimit = (path: string, word: string, limit: number, remaining: number | string): object =>
  path.startsWith(MESSAGES)
    ? {
        [`anthropic-ratelimit-${word}-limit`]: String(limit),
        [`anthropic-ratelimit-${word}-remaining`]: String(remaining),
        [`anthropic-ratelimit-${word}-reset`]: INSTANT,
      }
    : {
        [`x-ratelimit-limit-${word}`]: String(limit),
        [`x-ratelimit-remaining-${word}`]: String(remaining),
        [`x-ratelimit-reset-${word}`]: DURATION,
      }

/** The one key, which has these limits, of a gateway with one realtime upstream; it is its own id. */
const TEAM = 'team'

export const startLimitedRealtime = (limits: object): Promise<RealtimeLab> =>
  startRealtimeLab({ keys: [{ id: TEAM, key: TEAM, limits }] })

/** What an upstream says. */
export interface UpstreamEvent {
  readonly type: string
  readonly [name: string]: unknown
}

/** A session of a key with limits: the client, and the upstream's end. */
export interface LimitedSession {
  readonly client: RealtimeProbe
  readonly upstream: WebSocket
  /** Types of all that has reached the upstream. */
  readonly heard: readonly string[]
}

export async function openSession(
  { url }: TestGateway,
  upstream: RealtimeUpstream,
  key = TEAM,
): Promise<LimitedSession> {
  const client = await RealtimeProbe.open({ url: url.replace('http', 'ws'), key })
  const socket = upstream.sockets.at(-1)
  if (socket === undefined) throw new Error('no connection')
  const heard: string[] = []
  socket.on('message', (message: Buffer) => heard.push((JSON.parse(message.toString()) as { type: string }).type))
  return { client, upstream: socket, heard }
}

/** Sends, and resolves once whatever was sent has been judged: an event behind it has reached the upstream. */
export async function judged({ client, upstream, heard }: LimitedSession, ...events: RealtimeEvent[]): Promise<void> {
  const last = 'input_audio_buffer.clear'
  const before = heard.filter((type) => type === last).length
  for (const event of [...events, { type: last }]) client.send(event)
  while (heard.filter((type) => type === last).length === before) await once(upstream, 'message')
}

export async function limitsOf({ url }: TestGateway, key = TEAM): Promise<LimitsResponse['limits']> {
  return (await askLimits(url, key)).limits
}

/** What is left of a limit by the minute. */
export const leftOf = async (gateway: TestGateway, name: string, key = TEAM): Promise<number | undefined> =>
  (await limitsOf(gateway, key))[name]?.remaining

/** Asks for an answer of so many tokens at most. */
export const createOf = (mostTokens: number): RealtimeEvent => ({
  type: 'response.create',
  event_id: 'mine',
  response: { max_output_tokens: mostTokens },
})

/** What that reserves as the first event of a session: a token for four bytes of it, and all that it may answer. */
export const costOf = (mostTokens: number): number =>
  Math.ceil(JSON.stringify(createOf(mostTokens)).length / 4) + mostTokens

export const CREATED = { type: 'response.created', response: { id: 'resp_1' } }

/** The end of an answer; `tokens` undefined where the upstream does not say what it has used; `others` of its response. */
export const doneWith = (tokens: number | undefined, status = 'completed', others: object = {}): UpstreamEvent => {
  const usage = tokens === undefined ? null : { total_tokens: tokens, input_tokens: tokens, output_tokens: 0 }
  return { type: 'response.done', response: { id: 'resp_1', status, usage, ...others } }
}

/** Sends what an upstream says, and resolves once its client has heard it. */
export async function say({ client, upstream }: LimitedSession, event: UpstreamEvent): Promise<void> {
  upstream.send(JSON.stringify(event))
  await client.next(event.type)
}

/** Answers that the upstreams of these sessions were asked for. */
export const createsOf = (sessions: readonly LimitedSession[]): number =>
  sessions.flatMap(({ heard }) => heard).filter((type) => type === 'response.create').length

/** Keys by their limits: each test takes one of its own. The key is its id. */
export type LimitedKeys = Readonly<Record<string, object | undefined>>

export interface LimitedGateway {
  readonly gateway: TestGateway
  readonly simulator: Simulator
  /** `GET /v1/limits` of a key. */
  limits(key: string): Promise<LimitsResponse>
  post(key: string, path: string, body: string, signal?: AbortSignal): Promise<Response>
  chat(key: string, text?: string, more?: object, signal?: AbortSignal): Promise<Response>
  get(key: string, path: string): Promise<Response>
  close(): Promise<void>
}

/** A gateway with chat, speech, transcription and messages behind it, whose callers have limits. */
export async function startLimitedGateway(keys: LimitedKeys, sections: object = {}): Promise<LimitedGateway> {
  const simulator = await startP1Simulator({ apiKey: UPSTREAM_KEY })
  const messages = await startM1Simulator({ apiKey: UPSTREAM_KEY })
  const gateway = await startGateway({
    channels: [
      { id: 'p1-main', provider: 'p1', baseUrl: simulator.url, credentials: UPSTREAM_KEY },
      { id: 'm1-main', provider: 'm1', baseUrl: messages.url, credentials: UPSTREAM_KEY },
    ],
    keys: Object.entries(keys).map(([id, limits]) => ({ id, key: id, ...(limits === undefined ? {} : { limits }) })),
    sections,
  })
  const ask = (key: string, path: string, init: RequestInit = {}): Promise<Response> =>
    fetch(gateway.url + path, {
      ...init,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    })
  const post = (key: string, path: string, body: string, signal?: AbortSignal): Promise<Response> =>
    ask(key, path, { method: 'POST', body, signal: signal ?? null })
  return {
    gateway,
    simulator,
    limits: (key) => askLimits(gateway.url, key),
    post,
    chat: (key, text = 'Hello', more = {}, signal) => post(key, CHAT_PATH, chatText(text, more), signal),
    get: (key, path) => ask(key, path),
    close: async () => {
      await gateway.close()
      await simulator.close()
      await messages.close()
    },
  }
}
