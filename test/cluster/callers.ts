import { once } from 'node:events'
import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { WebSocket } from 'ws'
import type { LimitsResponse } from '../../src/account/account.controller.js'
import type { ConcurrencyLimitName, MinuteLimitName } from '../../src/core/quota.js'
import { CHAT_PATH, chatText, openRaw, TEST_KEY } from '../support/gateway.js'
import { askLimits } from '../support/limited-gateway.js'
import { REALTIME_PATH } from '../support/realtime-upstream.js'

/** The status of an answer, and the limit that it names. */
export type Refusal = readonly [status: number | undefined, limit: unknown]

/** Keys as a configuration has them; each is its own id. */
export const keysWith = (limits: Readonly<Record<string, object>>): readonly object[] =>
  Object.entries(limits).map(([id, each]) => ({ id, key: id, limits: each }))

/** A client with a key, at one address: a replica's, or the balancer's. */
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
  limits(): Promise<LimitsResponse> {
    return askLimits(this.url, this.key)
  }

  async remaining(name: MinuteLimitName): Promise<number | undefined> {
    return (await this.limits()).limits[name]?.remaining
  }

  async inUse(name: ConcurrencyLimitName): Promise<number | undefined> {
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

/** A streamed chat that is under way. */
export interface RunningStream {
  /** Resolves with the whole text once it is over, however it ends. */
  readonly text: Promise<string>
  readonly response: IncomingMessage
}

/** Resolves when the first of its `chunks` has arrived; the simulator sends one each `paceMs` of its own. */
export async function openStream(url: string, chunks: number): Promise<RunningStream> {
  const response = await openRaw(url, { path: CHAT_PATH, body: chatText(`#chunks=${chunks}`, { stream: true }) })
  response.setEncoding('utf8')
  const text = textOf(response)
  await once(response, 'data')
  return { text, response }
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = ''
  response.on('data', (chunk: string) => {
    text += chunk
  })
  response.on('error', () => undefined)
  await new Promise<void>((resolve) => {
    response.once('close', resolve)
  })
  return text
}

/** Callers at once; each makes its next call when its last one is over. */
export const RUSH_CALLERS = 25

/** What one call of a rush came to, and whatever else its test wants to know of it. */
export interface RushAnswer {
  readonly status: number
}

type Call<Answer extends RushAnswer> = (number: number) => Promise<Answer>

/** So many calls that all come at once, as fast as they go. */
export async function rush<Answer extends RushAnswer>(calls: number, call: Call<Answer>): Promise<readonly Answer[]> {
  const answers: Answer[] = []
  let begun = 0
  const caller = async (): Promise<void> => {
    while (begun < calls) answers.push(await call(begun++))
  }
  await Promise.all(Array.from({ length: RUSH_CALLERS }, caller))
  return answers
}

/**
 * The same until every caller has been refused once. The last of them sends its request alone, so that nothing is
 * reserved for others any more: what is not used then was withheld.
 */
export async function rushUntilRefused<Answer extends RushAnswer>(call: Call<Answer>): Promise<readonly Answer[]> {
  const answers: Answer[] = []
  let begun = 0
  const caller = async (): Promise<void> => {
    let answer: Answer
    do {
      answer = await call(begun++)
      answers.push(answer)
    } while (answer.status === 200)
  }
  await Promise.all(Array.from({ length: RUSH_CALLERS }, caller))
  return answers
}

export const ofStatus = <Answer extends RushAnswer>(answers: readonly Answer[], status: number): readonly Answer[] =>
  answers.filter((answer) => answer.status === status)

/** What one request of the load asks for. */
export interface LoadQuestion {
  /** Default POST. */
  readonly method?: 'GET'
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** How long the caller rests when it has sent half of the body. */
  readonly restMs?: number
  /** Whether this is the whole answer, and the one to this question. May throw instead of saying no. */
  isWhole(body: Buffer): boolean
}

/** A kind of request, each with a question of its own. */
export interface LoadKind {
  readonly name: string
  ask(id: string): LoadQuestion
}

/** How one request of the load ended. */
export interface LoadOutcome {
  /** The `x-request-id` it carried, its own. */
  readonly id: string
  readonly kind: string
  /** When it was sent and when it was over, by `performance.now()`. */
  readonly sentAtMs: number
  readonly endedAtMs: number
  /** Of an answer that came to its end. */
  readonly status?: number
  /** Of a status of 200 with all that was asked for. */
  readonly isWhole?: boolean
  /** The beginning of an answer that is not. */
  readonly text?: string
  /** What broke it instead. */
  readonly error?: string
}

const SHOWN_BYTES = 2000

/**
 * Requests of these kinds in turn at a steady rate, whether earlier ones have been answered or not, from a client that
 * keeps connections as clients do and never sends anything twice.
 */
export class SteadyLoad {
  private readonly agent = new Agent({ keepAlive: true })
  private readonly underWay = new Set<Promise<LoadOutcome>>()
  private readonly outcomes: LoadOutcome[] = []
  private sent = 0
  private readonly timer: NodeJS.Timeout

  constructor(
    private readonly url: string,
    perSecond: number,
    kinds: readonly LoadKind[],
  ) {
    this.timer = setInterval(() => {
      const kind = kinds[this.sent % kinds.length]
      if (kind !== undefined) this.begin(kind)
    }, 1000 / perSecond)
  }

  /** Requests that are under way now. */
  get waiting(): number {
    return this.underWay.size
  }

  /** Resolves with all outcomes when the last request is over. */
  async end(): Promise<readonly LoadOutcome[]> {
    clearInterval(this.timer)
    await Promise.all(this.underWay)
    this.agent.destroy()
    return this.outcomes
  }

  private begin(kind: LoadKind): void {
    const sent = this.send(kind)
    this.underWay.add(sent)
    void sent.then((outcome) => {
      this.underWay.delete(sent)
      this.outcomes.push(outcome)
    })
  }

  private async send(kind: LoadKind): Promise<LoadOutcome> {
    const sentAtMs = performance.now()
    const id = `load-${++this.sent}`
    const ended = await this.answerTo(id, kind.ask(id)).catch((error: unknown) => ({ error: String(error) }))
    return { id, kind: kind.name, sentAtMs, endedAtMs: performance.now(), ...ended }
  }

  private async answerTo(
    id: string,
    question: LoadQuestion,
  ): Promise<Pick<LoadOutcome, 'status' | 'isWhole' | 'text'>> {
    const { method = 'POST', path, headers = {}, body = '', restMs } = question
    const bytes = Buffer.from(body)
    const outgoing = request(new URL(path, this.url), { method, agent: this.agent })
    const sentHeaders = { authorization: `Bearer ${TEST_KEY}`, 'x-request-id': id, ...headers }
    for (const [name, value] of Object.entries(sentHeaders)) outgoing.setHeader(name, value)
    if (method === 'POST') outgoing.setHeader('content-length', bytes.length)
    const answered = once(outgoing, 'response')
    // An answer may come before the body has gone, and its connection end.
    outgoing.on('error', () => undefined)
    const written = write(outgoing, bytes, restMs)
    const [response] = (await answered) as [IncomingMessage]
    const pieces: Buffer[] = []
    for await (const piece of response as AsyncIterable<Buffer>) pieces.push(piece)
    await written
    const answer = Buffer.concat(pieces)
    const status = response.statusCode ?? 0
    return status === 200 && isWhole(question, answer)
      ? { status, isWhole: true }
      : { status, isWhole: false, text: answer.toString('utf8', 0, SHOWN_BYTES) }
  }
}

/** Never rejects: the request reports failures. */
async function write(outgoing: ClientRequest, bytes: Buffer, restMs: number | undefined): Promise<void> {
  if (restMs === undefined) {
    outgoing.end(bytes)
    return
  }
  const half = bytes.length >> 1
  outgoing.write(bytes.subarray(0, half))
  await pause(restMs)
  outgoing.end(bytes.subarray(half))
}

/** An unreadable response is none. */
export function isWhole(question: LoadQuestion, answer: Buffer): boolean {
  try {
    return question.isWhole(answer)
  } catch {
    return false
  }
}

/** Those that were not answered with 200 and all that was asked for. */
export const lost = (outcomes: readonly LoadOutcome[]): readonly LoadOutcome[] =>
  outcomes.filter(({ status, isWhole }) => status !== 200 || isWhole !== true)
