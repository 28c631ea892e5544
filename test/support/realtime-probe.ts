import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { WebSocket } from 'ws'

/** Longer than any handshake takes that comes to something; one that is never answered must not hold a test for ever. */
const HANDSHAKE_TIMEOUT_MS = 60_000

export type RealtimeEvent = Readonly<Record<string, unknown>>

export interface ProbeOptions {
  /** `ws://host:port`. */
  readonly url: string
  readonly key?: string
  readonly model?: string
  /** More query parameters, with a leading `&`. */
  readonly query?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly protocols?: readonly string[]
  readonly handshakeTimeoutMs?: number
}

export interface RefusedUpgrade {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** A plain WebSocket client of a realtime interface, which keeps every event until it is asked for. */
export class RealtimeProbe {
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>
  readonly #events: RealtimeEvent[] = []
  /** Frames that are no JSON text. */
  readonly oddFrames: Buffer[] = []
  #wake: () => void = () => undefined
  #isClosed = false

  private constructor(readonly socket: WebSocket) {
    socket.on('message', (data: Buffer, isBinary: boolean) => {
      const event = isBinary ? undefined : parse(data)
      if (event === undefined) this.oddFrames.push(data)
      else this.#events.push(event)
      this.#wake()
    })
    socket.on('error', () => undefined)
    this.closed = new Promise((resolve) => {
      socket.once('close', (code, reason) => {
        this.#isClosed = true
        this.#wake()
        resolve({ code, reason: reason.toString('utf8') })
      })
    })
  }

  /** Connects. Throws when the upgrade is refused, or not answered in time. */
  static async open(options: ProbeOptions): Promise<RealtimeProbe> {
    const probe = new RealtimeProbe(dial(options))
    await once(probe.socket, 'open')
    return probe
  }

  /** Connects, and expects an HTTP answer in the upgrade's place. Throws when there is none in time. */
  static async refused(options: ProbeOptions): Promise<RefusedUpgrade> {
    const socket = dial(options)
    socket.on('error', () => undefined)
    const [, response] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage]
    const pieces: Buffer[] = []
    for await (const piece of response as AsyncIterable<Buffer>) pieces.push(piece)
    return { status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(pieces).toString('utf8') }
  }

  send(event: RealtimeEvent | string): void {
    this.socket.send(typeof event === 'string' ? event : JSON.stringify(event))
  }

  /** Takes all events up to the first of this type. Throws when the connection ends before it came. */
  async until(type: string): Promise<RealtimeEvent[]> {
    for (;;) {
      const at = this.#events.findIndex((event) => event['type'] === type)
      if (at >= 0) return this.#events.splice(0, at + 1)
      if (this.#isClosed) throw new Error(`closed before ${type}; got ${typesOf(this.#events).join(' ')}`)
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  /** Takes everything up to the first event of this type and gives that one alone. */
  async next(type: string): Promise<RealtimeEvent> {
    const events = await this.until(type)
    return events.at(-1) ?? {}
  }

  /** Takes what has arrived and was not asked for. */
  rest(): RealtimeEvent[] {
    return this.#events.splice(0)
  }

  async close(): Promise<void> {
    this.socket.terminate()
    await this.closed
  }
}

export function typesOf(events: readonly RealtimeEvent[]): string[] {
  return events.map((event) => String(event['type']))
}

/** The types with runs of the same one shortened to one. */
export function shapeOf(events: readonly RealtimeEvent[]): string[] {
  return typesOf(events).filter((type, index, types) => type !== types[index - 1])
}

/** The decoded audio of all deltas. */
export function audioOf(events: readonly RealtimeEvent[]): Buffer {
  const deltas = events.filter((event) => /^response\.(output_)?audio\.delta$/.test(String(event['type'])))
  return Buffer.concat(deltas.map((event) => Buffer.from(String(event['delta']), 'base64')))
}

function dial({
  url,
  key = 'test-key',
  model = 'gpt-realtime',
  query = '',
  headers,
  protocols,
  handshakeTimeoutMs = HANDSHAKE_TIMEOUT_MS,
}: ProbeOptions): WebSocket {
  return new WebSocket(`${url}/v1/realtime?model=${model}${query}`, protocols === undefined ? [] : [...protocols], {
    headers: { authorization: `Bearer ${key}`, ...headers },
    perMessageDeflate: false,
    handshakeTimeout: handshakeTimeoutMs,
  })
}

function parse(data: Buffer): RealtimeEvent | undefined {
  try {
    return JSON.parse(data.toString('utf8')) as RealtimeEvent
  } catch {
    return undefined
  }
}
