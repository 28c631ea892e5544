import { Agent, request } from 'node:http'
import { CHAT_PATH, chatText } from '../support/chat-bodies.js'
import { TEST_KEY } from '../support/gateway.js'

/** How one request of the load ended. */
export interface LoadOutcome {
  /** The `x-request-id` it carried, its own. */
  readonly id: string
  /** When it was sent and when it was over, by `performance.now()`. */
  readonly sentAtMs: number
  readonly endedAtMs: number
  /** Of a complete answer. */
  readonly status?: number
  readonly text?: string
  /** What broke it instead. */
  readonly error?: string
}

/**
 * Chat requests at a steady rate, whether earlier ones have been answered or not, from a client that keeps connections as
 * clients do and never sends anything twice.
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
  ) {
    this.timer = setInterval(() => {
      this.begin()
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

  private begin(): void {
    const sent = this.send()
    this.underWay.add(sent)
    void sent.then((outcome) => {
      this.underWay.delete(sent)
      this.outcomes.push(outcome)
    })
  }

  private send(): Promise<LoadOutcome> {
    const sentAtMs = performance.now()
    const id = `load-${++this.sent}`
    const body = chatText(`This is ${id}.`)
    const headers = {
      authorization: `Bearer ${TEST_KEY}`,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'x-request-id': id,
    }
    return new Promise((resolve) => {
      const end = (how: Pick<LoadOutcome, 'status' | 'text' | 'error'>): void => {
        resolve({ id, sentAtMs, endedAtMs: performance.now(), ...how })
      }
      const outgoing = request(new URL(CHAT_PATH, this.url), { method: 'POST', agent: this.agent, headers })
      outgoing.on('error', ({ message }) => {
        end({ error: message })
      })
      outgoing.on('response', (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => {
          text += chunk
        })
        response.on('error', ({ message }) => {
          end({ error: message })
        })
        response.on('end', () => {
          end({ status: response.statusCode ?? 0, text })
        })
      })
      outgoing.end(body)
    })
  }
}

/** Those that were not answered with 200. */
export const lost = (outcomes: readonly LoadOutcome[]): readonly LoadOutcome[] =>
  outcomes.filter(({ status }) => status !== 200)
