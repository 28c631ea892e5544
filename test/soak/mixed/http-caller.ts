import { setTimeout as pause } from 'node:timers/promises'
import { Agent, type Dispatcher, type FormData, request } from 'undici'
import { type RealtimeEvent, RealtimeProbe } from '../../support/realtime-probe.js'
import { Turns } from '../soak-records.js'
import { ANSWER_FAULTS, type KeyName, KEYS } from './mixed-upstreams.js'

/** Enough for the last events of any stream: what carries audio or text by the page comes before them. */
const KEPT_BYTES = 800

/** By the path of the call: what the last events of a whole stream are, with the empty line behind them. */
const ENDS: readonly (readonly [path: RegExp, end: RegExp])[] = [
  [/^\/v1\/chat\/completions$/, /\ndata: \[DONE\]\n\n$/],
  [/^\/v1\/messages$/, /\nevent: message_stop\ndata: .*\n\n$/],
  [/^\/v1\/audio\/speech$/, /"speech\.audio\.done".*\n\ndata: \[DONE\]\n\n$/],
  [/^\/v1\/audio\/transcriptions$/, /"transcript\.text\.done".*\n\ndata: \[DONE\]\n\n$/],
  // It goes on until the task has ended.
  [/^\/vidgen\/v1\/videos\/.*\/events$/, /"task_status": ?"(?:succeed|failed)".*\n\n$/],
]
/** Begins an event that tells of a failure. Within a text of a model neither a line nor a quote can stand like this. */
const ERROR = /\n(?:event: error\n|data: \{"error")/

/** Reads a body, however long it is, and gives the last few hundred bytes of it. Rejects when it is cut. */
export async function readToEnd(body: AsyncIterable<Buffer>): Promise<string> {
  let kept: Buffer = Buffer.from('\n')
  for await (const piece of body) kept = Buffer.concat([kept, piece.subarray(-KEPT_BYTES)]).subarray(-KEPT_BYTES)
  return kept.toString('latin1').replaceAll('\r\n', '\n')
}

/**
 * Whether an event stream came to its own end and has no failure there: one that breaks off upstream ends properly too,
 * with an error or without its last event. False where nothing is known of streams at this path.
 */
export function endsWhole(path: string, end: string): boolean {
  const expected = ENDS.find(([of]) => of.test(path))?.[1]
  return expected?.test(end) === true && !ERROR.test(end)
}

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

/** `whole`: one spoken answer. `dropped`: the caller's connection breaks off in the middle of it. `slow`: hardly read. */
export type Manner = 'whole' | 'dropped' | 'slow'

const MODEL = 'gpt-realtime'
const SPOILT_EACH = 8
/** More than the gateway holds for a reader (`limits.realtimePauseBytes`) and the sockets on the way. */
const FLOOD = '#flood=4000000'
/** Short enough to be waited for, and so long that the gateway takes the session for idle: one in four. */
const SLOW_MS = { short: 300, long: 3000 }
/** Whatever becomes of a session, its upstream or the gateway has ended it by then, however busy the machine is. */
const PATIENCE_MS = 60_000
/** A handshake that hangs is given up so much later: by then it is listed in `hung`. */
const GIVEN_UP_AFTER_MS = 1000
const REFUSED_UPGRADE = /response: 429/
const REFUSED_TURN = 'rate_limit_exceeded'

/**
 * A client of one gateway. Requests that hang, which is a violation, are listed in `hung`. `answered`: the answer came to its end and is
 * `completed`; a session in which it is anything else, or that breaks off, has `failed`.
 */
export class RealtimeTalk {
  readonly hung: Manner[] = []
  private readonly faults = new Turns(ANSWER_FAULTS, SPOILT_EACH)
  private readonly pauses = new Turns([SLOW_MS.long], 4)

  constructor(
    private readonly url: string,
    private readonly patienceMs = PATIENCE_MS,
  ) {}

  /** Never rejects. */
  async hold(key: string, manner: Manner): Promise<Ending> {
    const { url, patienceMs } = this
    let probe: RealtimeProbe | undefined
    const watch = setTimeout(() => {
      this.hung.push(manner)
      probe?.socket.terminate()
    }, patienceMs)
    try {
      const handshakeTimeoutMs = patienceMs + GIVEN_UP_AFTER_MS
      probe = await RealtimeProbe.open({ url, key, model: MODEL, handshakeTimeoutMs })
      await this.ask(probe, manner)
      return await this.hear(probe, manner)
    } catch (error) {
      return REFUSED_UPGRADE.test(String(error)) || probe?.rest().some(isLimit) === true ? 'limited' : 'failed'
    } finally {
      clearTimeout(watch)
      await probe?.close()
    }
  }

  private async ask(probe: RealtimeProbe, manner: Manner): Promise<void> {
    await probe.until('session.created')
    const text = manner === 'slow' ? FLOOD : `Hello there. ${this.faultOf(manner)}`
    const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text }] }
    probe.send({ type: 'conversation.item.create', item })
    probe.send({ type: 'response.create' })
  }

  private faultOf(manner: Manner): string {
    return manner === 'whole' ? (this.faults.next() ?? '') : ''
  }

  private async hear(probe: RealtimeProbe, manner: Manner): Promise<Ending> {
    await probe.until('response.created')
    if (manner === 'dropped') return 'left'
    if (manner === 'slow') {
      probe.socket.pause()
      await pause(this.pauses.next() ?? SLOW_MS.short)
      probe.socket.resume()
    }
    const done = await probe.next('response.done')
    return (done['response'] as RealtimeEvent | undefined)?.['status'] === 'completed' ? 'answered' : 'failed'
  }
}

/** The event for a session whose key has no limit left: the session continues without responses. */
const isLimit = ({ error }: RealtimeEvent): boolean => (error as RealtimeEvent | undefined)?.['code'] === REFUSED_TURN
