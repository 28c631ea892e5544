import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { request } from 'node:http'
import type { Exchange } from '../server/exchange.js'
import { type Simulator, type SimulatorOptions, startSimulator } from '../server/simulator-server.js'

/** The three headers of Standard Webhooks, by their lower-case names. */
export interface WebhookHeaders {
  readonly 'webhook-id': string
  /** Unix seconds. */
  readonly 'webhook-timestamp': string
  readonly 'webhook-signature': string
}

/** Receivers refuse what is older or newer. */
const TOLERANCE_SECONDS = 300

/** Signs by Standard Webhooks; `secret` is `whsec_` and the base64 of the key. */
export function webhookHeaders(secret: string, id: string, timestampSeconds: number, body: string): WebhookHeaders {
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestampSeconds),
    'webhook-signature': `v1,${mac(secret, id, String(timestampSeconds), body)}`,
  }
}

/** Whether one of the signatures is right and the time is near. */
export function isSignedWith(
  secret: string,
  headers: Readonly<Record<string, string>>,
  body: string,
  nowMs: number,
): boolean {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures } = headers
  if (id === undefined || timestamp === undefined || signatures === undefined) return false
  if (!(Math.abs(Number(timestamp) - nowMs / 1000) <= TOLERANCE_SECONDS)) return false
  const expected = Buffer.from(`v1,${mac(secret, id, timestamp, body)}`)
  return signatures.split(' ').some((signature) => {
    const given = Buffer.from(signature)
    return given.length === expected.length && timingSafeEqual(given, expected)
  })
}

function mac(secret: string, id: string, timestamp: string, body: string): string {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  return createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
}

export interface CallbackReceiverOptions extends SimulatorOptions {
  /** `whsec_<base64>`: what came is checked by it. */
  readonly secret?: string
}

/** A notification as it came. */
export interface ReceivedCallback {
  /** The content type and the three of Standard Webhooks, as far as they came. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Whether it is signed with the secret; absent without one. */
  readonly verified?: boolean
}

export interface CallbackReceiver extends Simulator {
  /** Newest last, at most 100. */
  readonly received: readonly ReceivedCallback[]
}

const REMEMBERED_CALLBACKS = 100
const BODY_LIMIT_BYTES = 1024 * 1024
const SHOWN_HEADERS = ['content-type', 'webhook-id', 'webhook-timestamp', 'webhook-signature']
const JSON_HEADERS = { 'content-type': 'application/json; charset=utf-8' }

/**
 * Starts a receiver of notifications for the sandbox: takes them by `POST /hook`, and shows
 * what came by `GET /received`, as a JSON array, newest last.
 */
export async function startCallbackReceiver(options: CallbackReceiverOptions = {}): Promise<CallbackReceiver> {
  const received: ReceivedCallback[] = []
  const simulator = await startSimulator(async (exchange) => {
    const { method, path } = exchange.request
    if (method === 'POST' && path === '/hook') await receive(exchange, received, options.secret)
    else if (method === 'GET' && path === '/received') await exchange.send(200, JSON_HEADERS, shown(received))
    else await exchange.send(404, JSON_HEADERS, '{"error":"POST /hook takes callbacks, GET /received shows them"}\n')
  }, options)
  return Object.assign(simulator, { received })
}

async function receive(exchange: Exchange, received: ReceivedCallback[], secret: string | undefined): Promise<void> {
  const bytes = await exchange.readBody(BODY_LIMIT_BYTES)
  const refused = { status: 500, headers: JSON_HEADERS, body: '{}' }
  const dialect = { statusAnswer: () => refused, errorFrames: () => [] }
  if (await exchange.answeredByFault(dialect, undefined)) return
  if (bytes === undefined) {
    await exchange.send(413, JSON_HEADERS, '{}')
    return
  }
  const { headers } = exchange.request
  const body = bytes.toString('utf8')
  received.push({
    headers: Object.fromEntries(Object.entries(headers).filter(([name]) => SHOWN_HEADERS.includes(name))),
    body,
    ...(secret === undefined ? {} : { verified: isSignedWith(secret, headers, body, Date.now()) }),
  })
  if (received.length > REMEMBERED_CALLBACKS) received.shift()
  await exchange.send(200, JSON_HEADERS, '{}')
}

/** Bodies that are JSON are shown as they came, so that no number changes on the way. */
function shown(received: readonly ReceivedCallback[]): string {
  const entries = received.map(({ headers, body, verified }) => {
    const about = JSON.stringify({ headers, ...(verified === undefined ? {} : { verified }) })
    return `${about.slice(0, -1)},"body":${isJson(body) ? body : JSON.stringify(body)}}`
  })
  return `[${entries.join(',\n ')}]\n`
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

export interface HookOptions {
  /** `whsec_<base64>`: signs by Standard Webhooks. Default: unsigned. */
  readonly secret?: string
  /** Sends everything twice, under the same `webhook-id`. Default false. */
  readonly duplicate?: boolean
  /** Holds a task's notifications back until its last one, then sends the last one first. Default false. */
  readonly outOfOrder?: boolean
}

/** One notification as it was sent. */
export interface SentHook {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** What the receiver answered; absent when it did not. */
  readonly status?: number
  readonly error?: string
}

interface Hook {
  readonly url: string
  readonly body: string
}

const TIMEOUT_MS = 5000
/** Sent notifications remembered; older ones are forgotten. */
const REMEMBERED_HOOKS = 1000
const LOOPBACK = /^(?:127\.\d+\.\d+\.\d+|localhost|\[::1\])$/

/** Posts what tasks have to tell. One attempt for each notification, those of one task one after the other. */
export class HookSender {
  /** In the order they were sent, at most 1,000. */
  readonly sent: SentHook[] = []
  readonly #queues = new Map<string, Promise<void>>()
  readonly #heldBack = new Map<string, Hook[]>()
  readonly #closing = new AbortController()

  constructor(private readonly options: HookOptions = {}) {}

  /** `isLast`: nothing will come after it for this task. */
  send(taskId: string, url: string, body: string, isLast: boolean): void {
    const hook = { url, body }
    if (this.options.outOfOrder !== true) {
      this.#enqueue(taskId, [hook])
      return
    }
    const held = [...(this.#heldBack.get(taskId) ?? []), hook]
    if (isLast) {
      this.#heldBack.delete(taskId)
      this.#enqueue(taskId, held.reverse())
    } else this.#heldBack.set(taskId, held)
  }

  /** Resolves when everything not held back was sent. */
  async idle(): Promise<void> {
    while (this.#queues.size > 0) await Promise.all(this.#queues.values())
  }

  /** Breaks off what is under way. */
  async close(): Promise<void> {
    this.#closing.abort()
    await this.idle()
  }

  #enqueue(taskId: string, hooks: readonly Hook[]): void {
    const before = this.#queues.get(taskId) ?? Promise.resolve()
    const queue = before.then(async () => {
      for (const hook of hooks) await this.#post(hook)
      if (this.#queues.get(taskId) === queue) this.#queues.delete(taskId)
    })
    this.#queues.set(taskId, queue)
  }

  async #post({ url, body }: Hook): Promise<void> {
    const { secret, duplicate } = this.options
    const id = `msg_${randomBytes(12).toString('hex')}`
    const signature = secret === undefined ? {} : webhookHeaders(secret, id, Math.floor(Date.now() / 1000), body)
    const headers = { 'content-type': 'application/json', ...signature }
    for (let copies = duplicate === true ? 2 : 1; copies > 0 && !this.#closing.signal.aborted; copies -= 1) {
      this.sent.push({ url, headers, body, ...(await this.#attempt(url, headers, body)) })
      if (this.sent.length > REMEMBERED_HOOKS) this.sent.shift()
    }
  }

  async #attempt(
    url: string,
    headers: Record<string, string>,
    body: string,
  ): Promise<Pick<SentHook, 'status' | 'error'>> {
    if (!isLoopback(url)) return { error: 'nothing leaves this machine' }
    try {
      return { status: await post(url, headers, body, this.#closing.signal) }
    } catch (error) {
      return { error: error instanceof Error ? error.message : String(error) }
    }
  }
}

function isLoopback(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, hostname } = new URL(text)
  return protocol === 'http:' && LOOPBACK.test(hostname)
}

/** The status of the answer, whose body is thrown away. On a connection of its own, so that none outlives its use. */
function post(url: string, headers: Record<string, string>, body: string, closing: AbortSignal): Promise<number> {
  const signal = AbortSignal.any([closing, AbortSignal.timeout(TIMEOUT_MS)])
  return new Promise((resolve, reject) => {
    const sending = request(url, { method: 'POST', headers, agent: false, signal }, (response) => {
      response.resume()
      response.once('error', reject)
      response.once('end', () => {
        resolve(response.statusCode ?? 0)
      })
    })
    sending.once('error', reject)
    sending.end(body)
  })
}
