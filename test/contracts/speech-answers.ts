import type { IncomingMessage } from 'node:http'
import type { RawAnswer } from '../support/raw-http.js'

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
  const events = data.filter((one) => one !== '[DONE]').map((one) => JSON.parse(one) as SpeechEvent)
  return {
    deltas: events.flatMap(({ audio }) => (audio === undefined ? [] : [Buffer.from(audio, 'base64')])),
    types: data.map((one) => (one === '[DONE]' ? one : typeOf(JSON.parse(one) as SpeechEvent))),
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

const FLAT_PERIOD = 251

/** Reads the speech to its end, in either form. */
export async function flatAudio(response: IncomingMessage, form: string): Promise<FlatAudio> {
  const chunks: Buffer[] = []
  for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk)
  const body = Buffer.concat(chunks)
  const answer = { status: response.statusCode ?? 0, headers: response.headers, complete: response.complete }
  const text = form === 'sse' ? body.toString('latin1') : ''
  const audio = speechBytes({ ...answer, body, text }, form)
  const complete = response.complete && (form !== 'sse' || text.endsWith('data: [DONE]\r\n\r\n'))
  return { bytes: audio.length, isTrue: audio.every((byte, index) => byte === index % FLAT_PERIOD), complete }
}
