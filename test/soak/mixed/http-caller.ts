import { Agent, type Dispatcher, type FormData, request } from 'undici'
import { KEYS, type KeyName } from './mixed-configuration.js'
import { endsWhole, readToEnd } from './whole-streams.js'

/**
 * `answered`: 2xx and whole, an event stream with its own last event. `limited`: by a limit of the key. `refused`: any other
 * 4xx. `failed`: 5xx, no answer in time, cut in the middle, or an event stream that ends with an error or without its last
 * event. `left`: by the caller. Of realtime sessions: see `RealtimeTalk`.
 */
export const ENDINGS = ['answered', 'limited', 'refused', 'failed', 'left'] as const
export type Ending = (typeof ENDINGS)[number]

const TIMEOUT_MS = 30_000
/** Says which limit of the key refused a call: an upstream's own 429 has none. */
const LIMIT_HEADER = 'x-gateway-limit'

export interface Question {
  readonly path: string
  readonly json?: object
  readonly body?: Buffer | Uint8Array | FormData
  readonly contentType?: string
  /** The caller leaves after so long. */
  readonly stayMs?: number
}

interface LimitsAnswer {
  readonly limits: Readonly<Record<string, { readonly in_use?: number }>>
}

/** Calls one gateway by HTTP, over connections that it keeps. */
export class HttpCaller {
  private readonly agent = new Agent({ headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS })

  constructor(private readonly url: string) {}

  /** One call; never rejects. */
  async ask(question: Question, key: KeyName): Promise<Ending> {
    const { path, stayMs } = question
    const leaving = new AbortController()
    const leave =
      stayMs === undefined
        ? undefined
        : setTimeout(() => {
            leaving.abort()
          }, stayMs)
    try {
      const answer = await this.send(question, key, leaving.signal)
      return endingOf(path, answer, await readToEnd(answer.body))
    } catch {
      return leaving.signal.aborted ? 'left' : 'failed'
    } finally {
      clearTimeout(leave)
    }
  }

  /** How many requests and sessions a key has under way, as the gateway says. */
  async inUse(key: KeyName): Promise<number> {
    const headers = { authorization: `Bearer ${KEYS[key]}` }
    const { body } = await request(`${this.url}/v1/limits`, { dispatcher: this.agent, headers })
    const { limits } = (await body.json()) as LimitsAnswer
    return Object.values(limits).reduce((sum, { in_use: inUse = 0 }) => sum + inUse, 0)
  }

  close(): Promise<void> {
    return this.agent.destroy()
  }

  private send(question: Question, key: KeyName, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
    const { path, json, body, contentType } = question
    const type = json === undefined ? contentType : 'application/json'
    const sent = json === undefined ? body : JSON.stringify(json)
    return request(this.url + path, {
      dispatcher: this.agent,
      method: sent === undefined ? 'GET' : 'POST',
      headers: {
        authorization: `Bearer ${KEYS[key]}`,
        ...(path.startsWith('/v1/messages') ? { 'anthropic-version': '2023-06-01' } : {}),
        ...(type === undefined ? {} : { 'content-type': type }),
      },
      body: sent ?? null,
      signal,
    })
  }
}

/** `end`: of its body, which has come without being cut. */
function endingOf(path: string, { statusCode, headers }: Dispatcher.ResponseData, end: string): Ending {
  if (headers[LIMIT_HEADER] !== undefined) return 'limited'
  if (statusCode >= 300) return statusCode < 500 ? 'refused' : 'failed'
  const isStream = String(headers['content-type']).startsWith('text/event-stream')
  return isStream && !endsWhole(path, end) ? 'failed' : 'answered'
}
