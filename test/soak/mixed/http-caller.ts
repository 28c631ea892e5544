import { Agent, type FormData, request } from 'undici'
import { KEYS, type KeyName } from './mixed-configuration.js'

/**
 * `answered`: whole and 2xx. `limited`: by a limit of the key. `refused`: any other 4xx. `failed`: 5xx, or cut in the
 * middle. `left`: by the caller.
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
  async ask({ path, json, body, contentType, stayMs }: Question, key: KeyName): Promise<Ending> {
    const type = json === undefined ? contentType : 'application/json'
    const sent = json === undefined ? body : JSON.stringify(json)
    const leaving = new AbortController()
    const leave =
      stayMs === undefined
        ? undefined
        : setTimeout(() => {
            leaving.abort()
          }, stayMs)
    try {
      const {
        statusCode,
        headers,
        body: answer,
      } = await request(this.url + path, {
        dispatcher: this.agent,
        method: sent === undefined ? 'GET' : 'POST',
        headers: {
          authorization: `Bearer ${KEYS[key]}`,
          ...(path.startsWith('/v1/messages') ? { 'anthropic-version': '2023-06-01' } : {}),
          ...(type === undefined ? {} : { 'content-type': type }),
        },
        body: sent ?? null,
        signal: leaving.signal,
      })
      await answer.dump({ limit: Infinity })
      if (headers[LIMIT_HEADER] !== undefined) return 'limited'
      return statusCode < 300 ? 'answered' : statusCode < 500 ? 'refused' : 'failed'
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
}
