import { randomBytes } from 'node:crypto'
import { request } from 'node:http'

import { webhookHeaders } from './webhook-signature.js'

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
