import type { IncomingMessage } from 'node:http'
import type { Fault } from '@multi-model-gateway/sandbox/server/faults.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator-server.js'
import {
  openRaw,
  type RawAnswer,
  sendRaw,
  SPEECH_PATH,
  startGateway,
  TEST_KEY,
  type TestGateway,
} from '../support/gateway.js'
import { withLab } from '../support/provider-gateways.js'
import { type CountingProxy, startCountingProxy, startCuttingProxy } from '../support/proxies.js'

export const SPEECH_FORMATS = ['mp3', 'wav', 'aac', 'flac', 'opus', 'pcm'] as const
export type SpeechFormat = (typeof SPEECH_FORMATS)[number]

/** The two forms of one answer: raw bytes, and events. */
export const SPEECH_FORMS = ['audio', 'sse'] as const

/**
 * What befalls the next call at an upstream, whatever its protocol calls it:
 * - `callersFault`, `refusedKey`, `busy`, `failure`: a refusal, before any audio
 * - `quotesKey`: a refusal whose words repeat the key it was asked with
 * - `hang`: no answer at all
 * - `cut`: the connection is destroyed in the middle of the audio; `shortEnd`: the answer ends properly there
 * - `stall`: silence in the middle of the audio
 */
export type SpeechFault =
  | 'callersFault'
  | 'refusedKey'
  | 'busy'
  | 'failure'
  | 'quotesKey'
  | 'hang'
  | 'cut'
  | 'shortEnd'
  | 'stall'

/** A simulator as the contract sees it. */
interface SpeechUpstream {
  readonly port: number
  /** Calls received since the last reset, refused ones included. */
  readonly calls: () => number
  /** Calls to which something is still owed. */
  readonly speaking: () => number
  /** What the gateway must not have sent. */
  readonly violations: () => readonly string[]
  /** Resolves when the next call has arrived. */
  readonly nextCall: () => Promise<unknown>
  /** Resolves when the next call is given up by the gateway while something is owed to it. */
  readonly nextDisconnect: () => Promise<unknown>
  readonly queueFault: (fault: SpeechFault) => void
  readonly reset: () => void
  readonly close: () => Promise<void>
}

export interface SpeechMetadata {
  /** Taken by the provider. */
  readonly accepted: object
  /** Refused, each with the `param` that is named. Empty where metadata never leaves the gateway. */
  readonly refused: readonly (readonly [metadata: object, param: string])[]
}

/** One provider: how to start its simulator, and what of the contract is particular to it. */
export interface SpeechSetup {
  readonly provider: 'p1' | 'p2' | 'p3'
  readonly model: string
  /** What the channel holds; planted canaries that must never be disclosed, in no form that a scrubber knows as a key. */
  readonly credentials: string
  /** The format whose bytes are really sent for each one asked for; another one is announced as a fallback. */
  readonly sentAs: Readonly<Record<SpeechFormat, SpeechFormat>>
  readonly maximumCharacters: number
  /** Whether a clean but early end can be distinguished from a complete response, by format. */
  readonly seesShortEnd: Readonly<Record<(typeof SPEECH_FORMS)[number], boolean>>
  readonly metadata: SpeechMetadata
  readonly start: (options: { readonly paceMs?: number }) => Promise<SpeechUpstream>
}

export interface LabOptions {
  /** Pause of the simulators between two pieces of audio. */
  readonly paceMs?: number
  /** Laid over every channel. */
  readonly channel?: object
  /** Adds a channel `second`, tried after the first, on a simulator of its own. */
  readonly withSecond?: boolean
  /** Puts a counter between the gateway and the first upstream. */
  readonly isCounted?: boolean
  /** Cuts what the first upstream sends into pieces of an odd length. */
  readonly isCut?: boolean
}

export interface SpeechLab {
  readonly gateway: TestGateway
  readonly upstream: SpeechUpstream
  /** The same as `upstream` where there is one channel only. */
  readonly second: SpeechUpstream
  /** Counts what the first upstream sends, where that was asked for. */
  readonly counter: CountingProxy | undefined
  readonly speak: (input: string, fields?: object) => Promise<RawAnswer>
  /** The same with a key of the caller's own. */
  readonly speakWith: (key: string, input: string) => Promise<RawAnswer>
  /** The answer's head; its body is not read. */
  readonly open: (input: string, fields?: object) => Promise<IncomingMessage>
  /** Rejects when the caller leaves by the signal before the answer has begun. */
  readonly ask: (input: string, fields: object, signal: AbortSignal) => Promise<Response>
  readonly close: () => Promise<void>
}

/** Longer answers are audio. */
const RECORDED_BYTES = 100_000

/**
 * A gateway whose channels lead to simulators of the provider. `exposed` collects every response and the log, to be searched for what
 * must not leave the gateway.
 */
export async function startLab(setup: SpeechSetup, exposed: string[], options: LabOptions = {}): Promise<SpeechLab> {
  const { paceMs, channel = {}, withSecond = false, isCounted = false, isCut = false } = options
  const start = (): Promise<SpeechUpstream> => setup.start(paceMs === undefined ? {} : { paceMs })
  const upstream = await start()
  const second = withSecond ? await start() : upstream
  const counter = isCounted ? await startCountingProxy(upstream.port) : undefined
  const cutter = isCut ? await startCuttingProxy(upstream.port) : undefined
  const common = { provider: setup.provider, credentials: setup.credentials, models: [setup.model], ...channel }
  const channels: object[] = [{ id: 'first', baseUrl: counter?.url ?? cutter?.url ?? addressOf(upstream), ...common }]
  if (withSecond) channels.push({ id: 'second', baseUrl: addressOf(second), priority: 1, ...common })
  const gateway = await startGateway({ channels })
  const request = (input: string, fields: object): { path: string; body: string } => ({
    path: SPEECH_PATH,
    body: JSON.stringify({ model: setup.model, input, voice: 'alloy', ...fields }),
  })
  const recorded = (answer: RawAnswer): RawAnswer => {
    exposed.push(JSON.stringify(answer.headers), answer.body.toString('latin1', 0, RECORDED_BYTES))
    return answer
  }
  return {
    gateway,
    upstream,
    second,
    counter,
    speak: async (input, fields = {}) => recorded(await sendRaw(gateway.url, request(input, fields))),
    speakWith: async (key, input) => {
      const headers = { authorization: `Bearer ${key}` }
      return recorded(await sendRaw(gateway.url, { ...request(input, {}), headers }))
    },
    open: (input, fields = {}) => openRaw(gateway.url, request(input, fields)),
    ask: (input, fields, signal) => {
      const { path, body } = request(input, fields)
      const headers = { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' }
      return fetch(new URL(path, gateway.url), { method: 'POST', headers, body, signal })
    },
    close: async () => {
      await gateway.close()
      await counter?.close()
      await cutter?.close()
      await upstream.close()
      if (withSecond) await second.close()
      exposed.push(gateway.logText())
    },
  }
}

const addressOf = ({ port }: SpeechUpstream): string => `http://127.0.0.1:${port}`

/** A lab for one test: what it marks and leaves behind ends with it. */
export const withSpeechLab = (
  setup: SpeechSetup,
  exposed: string[],
  options: LabOptions,
  run: (lab: SpeechLab) => Promise<void>,
): Promise<void> => withLab(startLab(setup, exposed, options), run)

/** A simulator that is called over HTTP, as the contract sees it. */
export const httpUpstream = (simulator: Simulator, faults: Readonly<Record<SpeechFault, Fault>>): SpeechUpstream => ({
  port: simulator.port,
  calls: () => simulator.requests.length,
  speaking: () => simulator.activeRequests,
  violations: () => simulator.violations,
  nextCall: () => simulator.nextRequest(),
  nextDisconnect: () => simulator.nextAbort(),
  queueFault: (fault) => {
    simulator.queueFault(faults[fault])
  },
  reset: () => {
    simulator.reset()
  },
  close: () => simulator.close(),
})

interface SpeechEvent {
  readonly type?: string
  readonly audio?: string
  readonly usage?: Readonly<Record<string, unknown>>
  readonly error?: Readonly<Record<string, unknown>>
}

/** An answer as events, taken apart. */
export interface SpeechEvents {
  /** The bytes of each delta, in order. */
  readonly deltas: readonly Buffer[]
  /** Each event's type in order; `error` for an error frame, `[DONE]` for the terminator. */
  readonly types: readonly string[]
  readonly usage: Readonly<Record<string, unknown>> | undefined
  readonly error: Readonly<Record<string, unknown>> | undefined
}

/** Throws where the framing is anything but `data: …` and comments, each ended by an empty line, all line ends CRLF. */
export function speechEvents({ text, headers }: RawAnswer): SpeechEvents {
  if (headers['content-type'] !== 'text/event-stream; charset=utf-8')
    throw new Error(`not events: ${text.slice(0, 500)}`)
  if (/[^\r]\n|\r[^\n]/.test(text)) throw new Error('a line end is not CRLF')
  const frames = text.split('\r\n\r\n')
  if (frames.pop() !== '') throw new Error('the last frame breaks off')
  const data = frames.filter((frame) => !frame.startsWith(':')).map(dataOf)
  const read = data.map((one) => (one === '[DONE]' ? one : (JSON.parse(one) as SpeechEvent)))
  const events = read.filter((one) => one !== '[DONE]')
  return {
    deltas: events.flatMap(({ audio }) => (audio === undefined ? [] : [Buffer.from(audio, 'base64')])),
    types: read.map((one) => (one === '[DONE]' ? one : typeOf(one))),
    usage: events.find(({ usage }) => usage !== undefined)?.usage,
    error: events.find(({ error }) => error !== undefined)?.error,
  }
}

function dataOf(frame: string): string {
  if (!/^data: [^\r\n]+$/.test(frame)) throw new Error(`not one line of data: ${frame.slice(0, 200)}`)
  return frame.slice('data: '.length)
}

const typeOf = ({ type, error }: SpeechEvent): string => (error === undefined ? (type ?? 'nothing') : 'error')

/** The bytes of speech in either form. */
export const speechBytes = (answer: RawAnswer, form: string): Buffer =>
  form === 'sse' ? Buffer.concat(speechEvents(answer).deltas) : answer.body

/** What came of `#bytes=N`, where byte i of the audio is i modulo 251. */
export interface FlatAudio {
  readonly bytes: number
  /** Each byte is the one that belongs in its place: nothing is lost, repeated or put before another. */
  readonly isTrue: boolean
  /** False when the connection was cut before the answer's end, or events ended without their terminator. */
  readonly complete: boolean
}

const FLAT_PERIOD = Buffer.from(Array.from({ length: 251 }, (_, index) => index))

/** Reads the speech to its end, in either form. */
export async function flatAudio(response: IncomingMessage, form: string): Promise<FlatAudio> {
  const chunks: Buffer[] = []
  for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk)
  const body = Buffer.concat(chunks)
  const answer = { status: response.statusCode ?? 0, headers: response.headers, complete: response.complete }
  const text = form === 'sse' ? body.toString('latin1') : ''
  const audio = speechBytes({ ...answer, body, text }, form)
  const complete = response.complete && (form !== 'sse' || text.endsWith('data: [DONE]\r\n\r\n'))
  return { bytes: audio.length, isTrue: audio.equals(Buffer.alloc(audio.length, FLAT_PERIOD)), complete }
}
