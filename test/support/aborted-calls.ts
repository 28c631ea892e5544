import { once } from 'node:events'
import type { RecordedRequest } from '@multi-model-gateway/sandbox/server/recorded-request.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator.js'
import { CHAT_PATH, chatText, SPEECH_PATH, speechText } from './chat-bodies.js'
import { openRaw, type RawRequest } from './raw-http.js'

/** A call whose upstream keeps the caller waiting, before or in the middle of its answer. */
export interface LastingCall {
  readonly name: string
  readonly fault: 'hang' | 'stall'
  readonly path: string
  readonly body: string
}

const chatCall = { path: CHAT_PATH, body: chatText('#chunks=20', { stream: true }) }
const audioCall = { path: SPEECH_PATH, body: speechText('#bytes=2000000', { response_format: 'pcm' }) }
const eventsCall = {
  path: SPEECH_PATH,
  body: speechText('Hello, a sentence.', { model: 'gpt-4o-mini-tts', stream_format: 'sse' }),
}

export const LASTING_CALLS: readonly LastingCall[] = [
  { name: 'before a chat completion is answered', fault: 'hang', path: CHAT_PATH, body: chatText('Hello') },
  { name: 'in the middle of a chat completion', fault: 'stall', path: CHAT_PATH, body: chatText('Hello') },
  { name: 'before a chat stream begins', fault: 'hang', ...chatCall },
  { name: 'in the middle of a chat stream', fault: 'stall', ...chatCall },
  { name: 'before a speech begins', fault: 'hang', ...audioCall },
  { name: 'in the middle of raw audio', fault: 'stall', ...audioCall },
  { name: 'in the middle of speech events', fault: 'stall', ...eventsCall },
]

export interface Departed {
  readonly request: RecordedRequest
  /** From the caller's leaving to the upstream's seeing it. */
  readonly elapsedMs: number
}

/** Waits until the upstream has the request, lets the caller leave, and waits until the upstream sees that. */
export async function timeAbort(simulator: Simulator, start: () => () => void): Promise<Departed> {
  const arrived = simulator.nextRequest()
  const aborted = simulator.nextAbort()
  const leave = start()
  await arrived
  const leftAtMs = performance.now()
  leave()
  const request = await aborted
  return { request, elapsedMs: performance.now() - leftAtMs }
}

/** Reads the first byte of an answer and then destroys the socket. */
export async function readAndLeave(url: string, request: RawRequest): Promise<void> {
  const response = await openRaw(url, request)
  await once(response, 'data')
  response.destroy()
}
