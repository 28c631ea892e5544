import { once } from 'node:events'
import type { Socket } from 'node:net'
import { expect } from '@jest/globals'
import type { Fault, FaultName } from '@multi-model-gateway/sandbox/server/faults.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator-server.js'
import { Admission } from '../../src/overload/admission.js'
import { ChannelHealth, type ChannelSnapshot } from '../../src/routing/circuit-breaker.js'
import { eventually } from './eventually.js'
import {
  CHAT_PATH,
  chatText,
  connectTo,
  errorOf,
  openRaw,
  type RawAnswer,
  type RawRequest,
  sendRaw,
  SPEECH_PATH,
  speechText,
  startGateway,
  TEST_KEY,
  type TestGateway,
} from './gateway.js'
import type { P1Gateway } from './provider-gateways.js'
import { type RawUpstream, startRawUpstream } from './raw-upstream.js'

/** A call whose upstream keeps the caller waiting, before or in the middle of its answer. */
export interface LastingCall {
  readonly name: string
  readonly fault: 'hang' | 'stall'
  readonly path: string
  readonly body: string
}

const chatCall = { path: CHAT_PATH, body: chatText('#chunks=20', { stream: true }) }
const audioCall = { path: SPEECH_PATH, body: speechText('#bytes=2000000', { response_format: 'pcm' }) }
const eventsCall = {
  path: SPEECH_PATH,
  body: speechText('Hello, a sentence.', { model: 'gpt-4o-mini-tts', stream_format: 'sse' }),
}

export const LASTING_CALLS: readonly LastingCall[] = [
  { name: 'before a chat completion is answered', fault: 'hang', path: CHAT_PATH, body: chatText('Hello') },
  { name: 'in the middle of a chat completion', fault: 'stall', path: CHAT_PATH, body: chatText('Hello') },
  { name: 'before a chat stream begins', fault: 'hang', ...chatCall },
  { name: 'in the middle of a chat stream', fault: 'stall', ...chatCall },
  { name: 'before a speech begins', fault: 'hang', ...audioCall },
  { name: 'in the middle of raw audio', fault: 'stall', ...audioCall },
  { name: 'in the middle of speech events', fault: 'stall', ...eventsCall },
]

/**
 * Waits until the upstream has the request of `start`, which returns the function that disconnects the client. Resolves with
 * the milliseconds from the disconnect until the upstream sees it.
 */
export async function timeAbort(simulator: Simulator, start: () => () => void): Promise<number> {
  const arrived = simulator.nextRequest()
  const aborted = simulator.nextAbort()
  const disconnect = start()
  await arrived
  const startedAtMs = performance.now()
  disconnect()
  await aborted
  return performance.now() - startedAtMs
}

/** Reads the first byte of an answer and then destroys the socket. */
export async function readAndLeave(url: string, request: RawRequest): Promise<void> {
  const response = await openRaw(url, request)
  await once(response, 'data')
  response.destroy()
}

/** What a refusal must say; all four keys of the error are compared. */
export interface Refusal {
  readonly status: number
  readonly type?: string
  readonly code: string | null
  readonly param?: string | null
  /** What the message must say; default: anything worth reading. */
  readonly message?: RegExp
}

/** Sends the request and asserts that it was refused in these words before anything reached the upstream. */
export async function expectRefused(
  { gateway, simulator }: P1Gateway,
  request: RawRequest,
  refusal: Refusal,
): Promise<void> {
  const answer = await sendRaw(gateway.url, request)
  const { status, type = 'invalid_request_error', code, param = null } = refusal
  const error = errorOf(answer)
  expect({ status: answer.status, ...error }).toEqual({
    status,
    type,
    code,
    param,
    message: expect.any(String),
  })
  expect(error.message).toMatch(refusal.message ?? /^.{10}/)
  expect(error.message.length).toBeLessThanOrEqual(512)
  expect(answer.headers['content-type']).toBe('application/json')
  expect(answer.headers['x-should-retry']).toBe('false')
  expect(answer.headers['x-request-id']).toMatch(/^req_/)
  expect(simulator.requests).toEqual([])
}

/** A JSON object nested this many levels deep, itself included. */
export const nested = (levels: number): string => '{"a":'.repeat(levels - 1) + '{}' + '}'.repeat(levels - 1)

/** How a channel does, as the gateway shows it. */
export function channelOf({ application }: Pick<TestGateway, 'application'>, id: string): ChannelSnapshot {
  const channel = application
    .get(ChannelHealth)
    .snapshot()
    .find(({ channelId }) => channelId === id)
  if (channel === undefined) throw new Error(`there is no channel ${id}`)
  return channel
}

export const ask = ({ url }: Pick<TestGateway, 'url'>, text = 'Hello', more: object = {}): Promise<RawAnswer> =>
  sendRaw(url, { path: CHAT_PATH, body: chatText(text, more) })

/** Sends the request and returns the function that disconnects the client; the response is ignored. */
export function startCall({ url }: Pick<TestGateway, 'url'>, request: RawRequest): () => void {
  const disconnecting = new AbortController()
  const { method = 'POST', path, headers, body } = request
  const merged = { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json', ...headers }
  const init = { method, headers: merged as Record<string, string>, signal: disconnecting.signal }
  fetch(url + path, { ...init, ...(body === undefined ? {} : { body: Buffer.from(body) }) }).catch(() => undefined)
  return () => {
    disconnecting.abort()
  }
}

export const startChat = (gateway: Pick<TestGateway, 'url'>, text = 'Hello'): (() => void) =>
  startCall(gateway, { path: CHAT_PATH, body: chatText(text) })

export const times = <Result>(count: number, run: (index: number) => Result): Result[] =>
  Array.from({ length: count }, (_, index) => run(index))

/** Channel timeouts short enough to wait for, long enough for a busy machine. */
export const SHORT_TIMEOUTS = { timeouts: { firstByteMs: 500, idleMs: 500 } }

/** What a fault looks like to a caller before the first byte, in the columns of the chat and the audio dialect. */
export interface FaultRow {
  readonly fault: FaultName
  readonly chatStatus: number
  readonly audioStatus: number
  readonly type: string
  readonly code: string | null
  /** The answer's `x-should-retry`. */
  readonly shouldRetry?: 'false'
  /** A piece of the upstream's own message that the caller sees; absent = the upstream's words stay inside. */
  readonly words?: string
}

const no = { shouldRetry: 'false' } as const
const failed = { chatStatus: 502, audioStatus: 500, type: 'upstream_error', code: 'upstream_failed' }
const overloaded = { ...failed, chatStatus: 503, code: 'upstream_overloaded' }
const timedOut = { ...failed, chatStatus: 504, code: 'upstream_timeout', ...no }
const caller = (status: number, audioStatus = status): Omit<FaultRow, 'fault' | 'code'> => ({
  chatStatus: status,
  audioStatus,
  type: 'invalid_request_error',
  ...no,
})

/** The caller's own faults: relayed in the upstream's words. */
export const CALLER_FAULTS: readonly FaultRow[] = [
  { fault: '400', ...caller(400), code: 'invalid_value', words: "Invalid value: '#400'." },
  { fault: '404', ...caller(404, 400), code: 'model_not_found', words: 'does not exist' },
  { fault: '413', ...caller(413), type: 'server_error', code: null, words: 'Maximum content size limit' },
  { fault: '422', ...caller(422), code: null, words: 'could not be processed' },
]

/** The channel's credentials and balance: never the caller's business, and no retry of theirs helps. */
export const ACCOUNT_FAULTS: readonly FaultRow[] = [
  { fault: '401', ...failed, ...no },
  { fault: '402', ...failed, ...no },
  { fault: '403', ...failed, ...no },
  { fault: 'quota', ...failed, ...no },
]

/** Failures that another channel may not have. A request that was sent and not answered may have been billed. */
export const CHANNEL_FAULTS: readonly FaultRow[] = [
  { fault: '500', ...failed },
  { fault: '503', ...overloaded },
  { fault: '529', ...overloaded },
  { fault: 'html', ...failed },
  { fault: 'malformed', ...failed },
  { fault: 'empty', ...failed },
  { fault: 'reset', ...failed, ...no },
  { fault: 'hang', ...timedOut },
]

/** A 429 of the upstream with these headers. */
export const tooManyRequests = (headers: Readonly<Record<string, string>>): Fault => ({
  kind: 'status',
  status: 429,
  headers: { 'content-type': 'application/json', ...headers },
  body: '{"error":{"message":"Slow down, org-canary1","type":"requests","param":null,"code":"rate_limit_exceeded"}}',
})

export const ANSWER =
  '{"id":"c","object":"chat.completion","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}'
export const CHAT = { path: '/v1/chat/completions', body: '{"model":"m","messages":[{"role":"user","content":"x"}]}' }

/** A gateway that serves one request at once. */
export const FULL = { admission: { concurrentRequests: 1 } }

/** A chat call as it goes over the wire. */
export const chatBytes = (requestId = 'storm', body: string = CHAT.body, path: string = CHAT.path): string =>
  `POST ${path} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${TEST_KEY}\r\nx-request-id: ${requestId}\r\n` +
  `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`

/** A gateway with one upstream, whose answers can be held back: then the gateway has as much under way as was sent to it. */
export class FullGateway {
  readonly held: Socket[] = []
  private isHolding = false

  gateway!: TestGateway
  private upstream!: RawUpstream

  static async start(sections: object): Promise<FullGateway> {
    const lab = new FullGateway()
    lab.upstream = await startRawUpstream((socket) => {
      lab.serve(socket)
    })
    const channel = { id: 'only', provider: 'p1', credentials: 'k', models: ['m'] }
    const channels = [{ ...channel, baseUrl: `http://127.0.0.1:${lab.upstream.port}` }]
    lab.gateway = await startGateway({ channels, sections })
    return lab
  }

  get url(): string {
    return this.gateway.url
  }

  get admission(): Admission {
    return this.gateway.application.get(Admission)
  }

  /** From here on the upstream does not answer. */
  hold(): void {
    this.isHolding = true
  }

  /** One call that the upstream does not answer. Gives its answer, once there is one. */
  async fill(): Promise<{ readonly answered: Promise<RawAnswer> }> {
    this.hold()
    const answered = sendRaw(this.url, CHAT)
    await eventually(() => this.held.length === 1)
    return { answered }
  }

  empty(): void {
    this.isHolding = false
    for (const socket of this.held.splice(0)) answerChat(socket)
  }

  async close(): Promise<void> {
    await this.gateway.close()
    await this.upstream.close()
  }

  private serve(socket: Socket): void {
    if (this.isHolding) this.held.push(socket)
    else answerChat(socket)
  }
}

/** Writes the answer to one chat call. */
export function answerChat(socket: Socket): void {
  socket.write(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${ANSWER.length}\r\n\r\n${ANSWER}`)
}

/** A kept-alive connection, on which one request follows the other. */
export class KeptAliveClient {
  readonly socket: Socket

  constructor(url: string) {
    this.socket = connectTo({ url })
  }

  /** The answer's status, its head and its body, which comes with its head. */
  async ask(bytes = chatBytes()): Promise<{ readonly status: number; readonly head: string; readonly body: string }> {
    this.socket.write(bytes)
    const [chunk] = (await once(this.socket, 'data')) as [Buffer]
    const [head = '', body = ''] = chunk.toString().split('\r\n\r\n')
    return { status: Number(head.slice(9, 12)), head, body }
  }
}
