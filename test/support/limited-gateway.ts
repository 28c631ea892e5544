import { startM1Simulator } from '@multi-model-gateway/sandbox/m1/m1.simulator.js'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator.js'
import type { LimitsAnswer } from '../../src/account/limits.service.js'
import { askLimits } from './asked-limits.js'
import { CHAT_PATH, chatText } from './chat-bodies.js'
import { startGateway, type TestGateway } from './gateway.js'
import { UPSTREAM_KEY } from './p1-gateway.js'

/** Keys by their limits: each test takes one of its own. The key is its id. */
export type LimitedKeys = Readonly<Record<string, object | undefined>>

export interface LimitedGateway {
  readonly gateway: TestGateway
  readonly simulator: Simulator
  /** `GET /v1/limits` of a key. */
  limits(key: string): Promise<LimitsAnswer>
  post(key: string, path: string, body: string, signal?: AbortSignal): Promise<Response>
  chat(key: string, text?: string, more?: object, signal?: AbortSignal): Promise<Response>
  get(key: string, path: string): Promise<Response>
  close(): Promise<void>
}

/** A gateway with chat, speech, transcription and messages behind it, whose callers have limits. */
export async function startLimitedGateway(keys: LimitedKeys, sections: object = {}): Promise<LimitedGateway> {
  const simulator = await startP1Simulator({ apiKey: UPSTREAM_KEY })
  const messages = await startM1Simulator({ apiKey: UPSTREAM_KEY })
  const gateway = await startGateway({
    channels: [
      { id: 'p1-main', provider: 'p1', baseUrl: simulator.url, credentials: UPSTREAM_KEY },
      { id: 'm1-main', provider: 'm1', baseUrl: messages.url, credentials: UPSTREAM_KEY },
    ],
    keys: Object.entries(keys).map(([id, limits]) => ({ id, key: id, ...(limits === undefined ? {} : { limits }) })),
    sections,
  })
  const ask = (key: string, path: string, init: RequestInit = {}): Promise<Response> =>
    fetch(gateway.url + path, {
      ...init,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    })
  const post = (key: string, path: string, body: string, signal?: AbortSignal): Promise<Response> =>
    ask(key, path, { method: 'POST', body, signal: signal ?? null })
  return {
    gateway,
    simulator,
    limits: (key) => askLimits(gateway.url, key),
    post,
    chat: (key, text = 'Hello', more = {}, signal) => post(key, CHAT_PATH, chatText(text, more), signal),
    get: (key, path) => ask(key, path),
    close: async () => {
      await gateway.close()
      await simulator.close()
      await messages.close()
    },
  }
}
