import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { type AudioFormat, speak } from '@multi-model-gateway/sandbox/realtime/audio-format.js'
import type { RealtimeDialect } from '@multi-model-gateway/sandbox/realtime/realtime-dialect.js'
import {
  type RealtimeSimulator,
  startRealtimeSimulator,
} from '@multi-model-gateway/sandbox/realtime/realtime.simulator.js'
import { WebSocket } from 'ws'

/** Longer than any handshake takes that comes to something; one that is never answered must not hold a test for ever. */
const HANDSHAKE_TIMEOUT_MS = 60_000

export type RealtimeEvent = Readonly<Record<string, unknown>>

export interface ProbeOptions {
  /** `ws://host:port`. */
  readonly url: string
  readonly key?: string
  readonly model?: string
  /** In the place of the path with the model. */
  readonly path?: string
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
  path = `/v1/realtime?model=${model}${query}`,
  headers,
  protocols,
  handshakeTimeoutMs = HANDSHAKE_TIMEOUT_MS,
}: ProbeOptions): WebSocket {
  return new WebSocket(`${url}${path}`, protocols === undefined ? [] : [...protocols], {
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

/** The realtime simulator and one client of it. */
class RealtimeSimulatorLab {
  simulator!: RealtimeSimulator
  probe!: RealtimeProbe

  /** Starts the simulator and connects to it as a client of its dialect does. */
  readonly connect = async (dialect: RealtimeDialect, options: { paceMs?: number } = {}): Promise<void> => {
    this.simulator = await startRealtimeSimulator({ apiKey: 'test-key', dialect, ...options })
    const headers = dialect === 'beta' ? { 'openai-beta': 'realtime=v1' } : {}
    this.probe = await RealtimeProbe.open({ url: this.simulator.url, headers })
  }

  async close(): Promise<void> {
    await this.probe.close()
    await this.simulator.close()
  }

  /** The error that answers this event, which is sent with the id `ev_1`. */
  readonly refusal = async (event: RealtimeEvent): Promise<RealtimeEvent> => {
    this.probe.send({ ...event, event_id: 'ev_1' })
    return (await this.probe.next('error'))['error'] as RealtimeEvent
  }
}

/** A session that is spoken with in text. */
export class ConversationLab extends RealtimeSimulatorLab {
  readonly start = async (dialect: RealtimeDialect, options: { paceMs?: number } = {}): Promise<void> => {
    await this.connect(dialect, options)
    await this.probe.next(dialect === 'beta' ? 'conversation.created' : 'session.created')
  }

  /** Adds a message of the user; `more` lies over the item. */
  readonly say = (text: string, more: object = {}): void => {
    const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text }], ...more }
    this.probe.send({ type: 'conversation.item.create', item })
  }
}

/** The setting that lets a response be text alone. */
export const textIn = (dialect: RealtimeDialect): object =>
  dialect === 'ga' ? { output_modalities: ['text'] } : { modalities: ['text'] }

/** The first event that tells of a new item. */
export const nameIn = (dialect: RealtimeDialect): string =>
  dialect === 'ga' ? 'conversation.item.added' : 'conversation.item.created'

export const responseOf = (event: RealtimeEvent | undefined): RealtimeEvent => event?.['response'] as RealtimeEvent

export const TOOL = { type: 'function', name: 'get_weather', parameters: { type: 'object', properties: {} } }

/** A session whose settings are changed. */
export class SessionUpdateLab extends RealtimeSimulatorLab {
  readonly start = async (dialect: RealtimeDialect): Promise<void> => {
    await this.connect(dialect)
    await this.probe.next('session.created')
  }

  /** The error that answers the update. */
  readonly updateRefusal = (session: unknown): Promise<RealtimeEvent> =>
    this.refusal({ type: 'session.update', session })

  /** The session after the update. */
  readonly updated = async (session: unknown): Promise<RealtimeEvent> => {
    this.probe.send({ type: 'session.update', session })
    const event = await this.probe.next('session.updated')
    return event['session'] as RealtimeEvent
  }
}

export const FRAME_BYTES = 4800
export const TRANSCRIPTION = 'conversation.item.input_audio_transcription'

export const TRANSCRIPTION_PATH = '/v1/realtime?intent=transcription'

/** The event by which a client of a dialect sets a transcription session, without turn detection, and its answer. */
export const transcriptionUpdate = (dialect: RealtimeDialect, model: string, more: object = {}): RealtimeEvent =>
  dialect === 'ga'
    ? {
        type: 'session.update',
        session: {
          type: 'transcription',
          audio: { input: { transcription: { model }, turn_detection: null, ...more } },
        },
      }
    : {
        type: 'transcription_session.update',
        session: { input_audio_transcription: { model }, turn_detection: null, ...more },
      }

/** The names of a transcription session's own events. */
export const transcriptionEvent = (dialect: RealtimeDialect, what: 'created' | 'updated'): string =>
  dialect === 'ga' ? `session.${what}` : `transcription_session.${what}`

/** A session that is spoken with in audio. */
export class SpokenTurnLab extends RealtimeSimulatorLab {
  /** Connects and gives the session these settings. */
  readonly start = async (dialect: RealtimeDialect, session: object, paceMs = 0): Promise<void> => {
    await this.connect(dialect, { paceMs })
    const settings = dialect === 'ga' ? { type: 'realtime', ...session } : session
    this.probe.send({ type: 'session.update', session: settings })
    await this.probe.next('session.updated')
  }

  /** Sends audio, cut into events of this size. */
  readonly append = (audio: Buffer, pieceBytes?: number): void => {
    appendAudio(this.probe, audio, pieceBytes)
  }
}

/** Sends audio, cut into events of this size. */
export function appendAudio(probe: RealtimeProbe, audio: Buffer, pieceBytes = FRAME_BYTES): void {
  for (let at = 0; at < audio.length; at += pieceBytes) {
    const piece = audio.subarray(at, at + pieceBytes)
    probe.send({ type: 'input_audio_buffer.append', audio: piece.toString('base64') })
  }
}

/** Spoken words between two silences. */
export function spoken(format: AudioFormat = 'pcm16', silenceMs = 500): Buffer {
  const silence = { pcm16: Buffer.alloc(48 * silenceMs), g711_ulaw: Buffer.alloc(8 * silenceMs, 0xff) }
  const quiet = format === 'g711_alaw' ? Buffer.alloc(8 * silenceMs, 0xd5) : silence[format]
  return Buffer.concat([quiet, ...speak('What is the weather', format, 1), quiet])
}

export const sha = (audio: Buffer): string => createHash('sha1').update(audio).digest('hex').slice(0, 12)

/** What the answer says that this `response.done` ends. */
export function transcriptOf(done: RealtimeEvent): unknown {
  return (done as { response: { output: { content: { transcript: string }[] }[] } }).response.output[0]?.content[0]
    ?.transcript
}
