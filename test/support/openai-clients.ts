import OpenAI, { type ClientOptions } from 'openai'
import OpenAI4 from 'openai-4'
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
