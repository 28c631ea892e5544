import { once } from 'node:events'
import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { TEST_KEY } from '../support/gateway.js'

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

/** Never rejects: what goes wrong is told by the request. */
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

/** An answer that nobody can read is none. */
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
