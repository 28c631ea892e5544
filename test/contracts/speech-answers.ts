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
  /** The bytes of all deltas, joined. */
  readonly audio: Buffer
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
    audio: Buffer.concat(events.map(({ audio = '' }) => Buffer.from(audio, 'base64'))),
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
  form === 'sse' ? speechEvents(answer).audio : answer.body

/** Reads to the end; false where the connection was cut. */
export async function drained(response: IncomingMessage): Promise<{ bytes: number; complete: boolean }> {
  let bytes = 0
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) bytes += chunk.length
  } catch {
    // A cut connection; `complete` says so.
  }
  return { bytes, complete: response.complete }
}
