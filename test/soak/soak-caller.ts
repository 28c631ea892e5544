import { Agent, request } from 'undici'
import type { GatewayFleet } from './gateway-fleet.js'
import type { Random } from './random.js'
import type { TaskObject } from './soak-ledger.js'

/** A caller of the gateway. */
export interface Owner {
  /** The id of the key. */
  readonly id: string
  readonly key: string
}

export const KINDS = ['text2video', 'multi-image2video'] as const
export type Kind = (typeof KINDS)[number]

/** An answer that came whole. Times are `performance.now()`. */
export interface Answer {
  readonly status: number
  readonly isReplay: boolean
  /** What the envelope wraps; undefined for a refusal. */
  readonly data: unknown
  readonly startedAtMs: number
  readonly endedAtMs: number
}

export interface Question {
  readonly owner: Owner
  /** Below `/vidgen/v1/videos/`. */
  readonly path: string
  readonly body?: string
  readonly idempotencyKey?: string
  /** The caller leaves. */
  readonly signal?: AbortSignal
}

const TIMEOUT_MS = 30_000
const PREFIX = '/vidgen/v1/videos/'

/** Asks whichever gateway listens. */
export class SoakCaller {
  private readonly agent = new Agent({ headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS })

  constructor(private readonly fleet: GatewayFleet) {}

  /** undefined when the connection was refused, or cut before the answer was whole. */
  async ask({ owner, path, body, idempotencyKey, signal }: Question, random: Random): Promise<Answer | undefined> {
    const url = `${await this.fleet.address(random)}${PREFIX}${path}`
    const startedAtMs = performance.now()
    try {
      const response = await request(url, {
        dispatcher: this.agent,
        method: body === undefined ? 'GET' : 'POST',
        headers: {
          authorization: `Bearer ${owner.key}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
        },
        ...(body === undefined ? {} : { body }),
        ...(signal === undefined ? {} : { signal }),
      })
      const { data } = (await response.body.json()) as { readonly data?: unknown }
      const isReplay = response.headers['x-idempotent-replay'] === 'true'
      return { status: response.statusCode, isReplay, data, startedAtMs, endedAtMs: performance.now() }
    } catch {
      return undefined
    }
  }

  /** The same, again and again until the answer is whole and no 5xx; for when all is quiet. */
  async insist(question: Question, random: Random): Promise<Answer> {
    for (let left = 20; left > 0; left -= 1) {
      const answer = await this.ask(question, random)
      if (answer !== undefined && answer.status < 500) return answer
    }
    throw new Error(`the gateway does not answer ${question.path}`)
  }

  close(): Promise<void> {
    return this.agent.destroy()
  }
}

export const taskIn = ({ status, data }: Answer): TaskObject | undefined =>
  status === 200 && data !== undefined ? (data as TaskObject) : undefined

export const tasksIn = ({ status, data }: Answer): readonly TaskObject[] =>
  status === 200 && Array.isArray(data) ? (data as TaskObject[]) : []
