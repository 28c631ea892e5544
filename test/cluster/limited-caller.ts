import { once } from 'node:events'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { WebSocket } from 'ws'
import type { LimitsAnswer } from '../../src/account/limits.service.js'
import type { HeldLimitName, MinuteLimitName } from '../../src/core/limit-names.js'
import { askLimits } from '../support/asked-limits.js'
import { CHAT_PATH, chatText } from '../support/chat-bodies.js'
import { REALTIME_PATH } from '../support/upgrade-client.js'

/** The status of an answer, and the limit that it names. */
export type Refusal = readonly [status: number | undefined, limit: unknown]

/** Keys as a configuration has them; each is its own id. */
export const keysWith = (limits: Readonly<Record<string, object>>): readonly object[] =>
  Object.entries(limits).map(([id, each]) => ({ id, key: id, limits: each }))

/** Somebody with a key, at one address: a replica's, or the balancer's. */
export class LimitedCaller {
  private readonly headers: { readonly authorization: string }

  constructor(
    private readonly url: string,
    private readonly key: string,
  ) {
    this.headers = { authorization: `Bearer ${key}` }
  }

  chat(text = 'Hi', more: object = {}, signal?: AbortSignal): Promise<Response> {
    return fetch(this.url + CHAT_PATH, {
      method: 'POST',
      headers: { ...this.headers, 'content-type': 'application/json' },
      body: chatText(text, more),
      signal: signal ?? null,
    })
  }

  /** `GET /v1/limits`. */
  limits(): Promise<LimitsAnswer> {
    return askLimits(this.url, this.key)
  }

  async remaining(name: MinuteLimitName): Promise<number | undefined> {
    return (await this.limits()).limits[name]?.remaining
  }

  async inUse(name: HeldLimitName): Promise<number | undefined> {
    return (await this.limits()).limits[name]?.in_use
  }

  /** A realtime session that is open. */
  async dial(): Promise<WebSocket> {
    const socket = this.socket()
    await once(socket, 'open')
    return socket
  }

  /**
   * How an attempt to open a session is answered: the status (101 = it was opened, and is closed again), and the limit that
   * refused it.
   */
  dialled(): Promise<Refusal> {
    const socket = this.socket()
    return new Promise((resolve, reject) => {
      socket.on('error', reject)
      socket.once('open', () => {
        socket.close()
        resolve([101, undefined])
      })
      socket.once('unexpected-response', (request: ClientRequest, { statusCode, headers }: IncomingMessage) => {
        request.destroy()
        resolve([statusCode, headers['x-gateway-limit']])
      })
    })
  }

  private socket(): WebSocket {
    return new WebSocket(this.url.replace('http', 'ws') + REALTIME_PATH, { headers: this.headers })
  }
}

/** The same of a chat, once it has been read to its end. */
export async function refusalOf(answer: Response): Promise<Refusal> {
  await answer.arrayBuffer()
  return [answer.status, answer.headers.get('x-gateway-limit')]
}
