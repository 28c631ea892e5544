import { ChannelHealth, type ChannelSnapshot } from '../../src/routing/circuit-breaker.js'
import { CHAT_PATH, chatText } from './chat-bodies.js'
import { TEST_KEY, type TestGateway } from './gateway.js'
import { type RawAnswer, sendRaw } from './raw-http.js'

/** How a channel does, as the gateway shows it. */
export function channelOf({ application }: Pick<TestGateway, 'application'>, id: string): ChannelSnapshot {
  const channel = application
    .get(ChannelHealth)
    .snapshot()
    .find(({ channelId }) => channelId === id)
  if (channel === undefined) throw new Error(`there is no channel ${id}`)
  return channel
}

export const ask = ({ url }: Pick<TestGateway, 'url'>, text = 'Hello', more: object = {}): Promise<RawAnswer> =>
  sendRaw(url, { path: CHAT_PATH, body: chatText(text, more) })

/** A call that nobody has answered yet; returns the way to leave. */
export function askAndWait({ url }: Pick<TestGateway, 'url'>, text = 'Hello'): () => void {
  const leaving = new AbortController()
  const headers = { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' }
  fetch(url + CHAT_PATH, { method: 'POST', headers, body: chatText(text), signal: leaving.signal }).catch(
    () => undefined,
  )
  return () => {
    leaving.abort()
  }
}

export const times = <Result>(count: number, run: (index: number) => Result): Result[] =>
  Array.from({ length: count }, (_, index) => run(index))
