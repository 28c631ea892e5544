import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { CHAT_PATH, chatText } from '../support/chat-bodies.js'
import { openRaw } from '../support/raw-http.js'

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
