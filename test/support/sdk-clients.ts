import OpenAI, { type ClientOptions } from 'openai'
import OpenAI4 from 'openai-4'
import { OpenAIRealtimeWS as BetaRealtimeWS } from 'openai-4/beta/realtime/ws'
import { OpenAIRealtimeWS } from 'openai/realtime/ws'
import { WebSocket } from 'ws'
import type { RealtimeDialect } from '../../src/dialects/realtime/dialect.js'
import { TEST_KEY, type TestGateway } from './gateway.js'

export type MakeClient = (gateway: Pick<TestGateway, 'url'>, options?: ClientOptions) => OpenAI

export const openai6: MakeClient = (gateway, options) => new OpenAI(settings(gateway, options))

/** The old client; the calls used here have the same shape, so that one test can speak for both. */
export const openai4: MakeClient = (gateway, options) =>
  new OpenAI4(settings(gateway, options) as ConstructorParameters<typeof OpenAI4>[0]) as unknown as OpenAI

/** Rows for `describe.each`. */
export const OPENAI_CLIENTS: readonly (readonly [name: string, make: MakeClient])[] = [
  ['openai 6.49.0', openai6],
  ['openai 4.104.0', openai4],
]

const settings = ({ url }: Pick<TestGateway, 'url'>, options: ClientOptions = {}): ClientOptions => ({
  apiKey: TEST_KEY,
  baseURL: `${url}/v1`,
  maxRetries: 0,
  ...options,
})

/** `stream()` and `runTools()` stand under `beta` in the old client. */
export function chatHelpers(client: OpenAI): OpenAI['chat']['completions'] {
  if ('runTools' in client.chat.completions && 'stream' in client.chat.completions) return client.chat.completions
  return (client.beta as unknown as { chat: OpenAI['chat'] }).chat.completions
}

/** Its name is another one in the old client. */
export const deleteResponse = ({ responses }: OpenAI, id: string): Promise<void> =>
  'delete' in responses ? responses.delete(id) : (responses as { del(id: string): Promise<void> }).del(id)

/** What every client can: `socket` is the one it opened by itself. */
export interface RealtimeClient {
  readonly dialect: RealtimeDialect
  readonly socket: WebSocket
  send(event: object): void
  onEvent(listener: (event: object) => void): void
  close(): void
}

const options = (requestId: string) => ({ rejectUnauthorized: false, headers: { 'x-request-id': requestId } })

/** The handshake of the specification. */
export function plainClient(url: string, requestId: string): RealtimeClient {
  const socket = new WebSocket(`${url.replace('https', 'wss')}/v1/realtime?model=gpt-realtime`, ['realtime'], {
    ...options(requestId),
    headers: { authorization: `Bearer ${TEST_KEY}`, 'x-request-id': requestId },
  })
  return {
    dialect: 'beta',
    socket,
    send: (event) => {
      socket.send(JSON.stringify(event))
    },
    onEvent: (listener) => {
      socket.on('message', (data: Buffer) => {
        listener(JSON.parse(data.toString()) as object)
      })
    },
    close: () => {
      socket.close(1000)
    },
  }
}

export function openai4Client(url: string, requestId: string): RealtimeClient {
  const api = new OpenAI4({ apiKey: TEST_KEY, baseURL: `${url}/v1` })
  return sdkClient('beta', new BetaRealtimeWS({ model: 'gpt-realtime', options: options(requestId) }, api))
}

export function openai6Client(url: string, requestId: string): RealtimeClient {
  const api = new OpenAI({ apiKey: TEST_KEY, baseURL: `${url}/v1` })
  return sdkClient('ga', new OpenAIRealtimeWS({ model: 'gpt-realtime', options: options(requestId) }, api))
}

/**
 * The SDKs cannot ask for a transcription session, and always name a model. Their base address can: what they put behind
 * it becomes a parameter that the gateway does not know.
 */
export function transcriptionClient(dialect: RealtimeDialect, url: string, requestId: string): RealtimeClient {
  const baseURL = `${url}/v1/realtime?intent=transcription&sdk=`
  const settings = { model: 'gpt-4o-transcribe', options: options(requestId) }
  return dialect === 'ga'
    ? sdkClient('ga', new OpenAIRealtimeWS(settings, new OpenAI({ apiKey: TEST_KEY, baseURL })))
    : sdkClient('beta', new BetaRealtimeWS(settings, new OpenAI4({ apiKey: TEST_KEY, baseURL })))
}

/** The clients of both SDKs have the same methods; the events are typed, and here they are plain objects. */
function sdkClient(dialect: RealtimeClient['dialect'], client: BetaRealtimeWS | OpenAIRealtimeWS): RealtimeClient {
  const realtime = client as unknown as {
    readonly socket: RealtimeClient['socket']
    send(event: object): void
    on(name: 'event', listener: (event: object) => void): void
    on(name: 'error', listener: (error: Error) => void): void
    close(): void
  }
  return {
    dialect,
    socket: realtime.socket,
    send: (event) => {
      realtime.send(event)
    },
    onEvent: (listener) => {
      realtime.on('event', listener)
      realtime.on('error', (error) => {
        throw error
      })
    },
    close: () => {
      realtime.close()
    },
  }
}
