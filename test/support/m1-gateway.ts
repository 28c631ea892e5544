import Anthropic, { type ClientOptions } from '@anthropic-ai/sdk'
import { startM1Simulator } from '@multi-model-gateway/sandbox/m1/m1.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator.js'
import Anthropic1 from 'anthropic-sdk-1'
import { TEST_KEY, type TestGateway } from './gateway.js'
import { UPSTREAM_KEY } from './p1-gateway.js'
import { type ProviderLab, type ProviderLabOptions, startProviderLab } from './provider-gateways.js'

export const MESSAGES = '/v1/messages'
export const COUNT_TOKENS = '/v1/messages/count_tokens'

export type M1Gateway = ProviderLab<Simulator>

const m1Channel = (id: string, { url }: Simulator, overrides: object = {}): object => ({
  id,
  provider: 'm1',
  baseUrl: url,
  credentials: UPSTREAM_KEY,
  ...overrides,
})

export const startM1Gateway = (options: ProviderLabOptions = {}): Promise<M1Gateway> =>
  startProviderLab({ start: () => startM1Simulator({ apiKey: UPSTREAM_KEY }), channel: m1Channel }, options)

export type MakeAnthropic = (gateway: Pick<TestGateway, 'url'>, options?: ClientOptions) => Anthropic

const settings = ({ url }: Pick<TestGateway, 'url'>, options: ClientOptions = {}): ClientOptions => ({
  apiKey: TEST_KEY,
  baseURL: url,
  maxRetries: 0,
  ...options,
})

export const anthropic0: MakeAnthropic = (gateway, options) => new Anthropic(settings(gateway, options))

/** The new client; the calls used here have the same shape, so that one test can speak for both. */
export const anthropic1: MakeAnthropic = (gateway, options) =>
  new Anthropic1(settings(gateway, options) as ConstructorParameters<typeof Anthropic1>[0]) as unknown as Anthropic

/** Rows for `describe.each`: the client, the version it speaks and the header in which it sends its key. */
export const ANTHROPIC_CLIENTS = [
  ['@anthropic-ai/sdk 0.137.0', anthropic0, '2023-06-01', 'x-api-key'],
  ['@anthropic-ai/sdk 1.11.0', anthropic1, '2026-10-21', 'authorization'],
] as const

/** A messages request with one user message. */
export const message = (
  text: string,
  more: object = {},
): { model: string; max_tokens: number; messages: { role: 'user'; content: string }[] } => ({
  model: 'claude-sonnet-4-6',
  max_tokens: 200,
  messages: [{ role: 'user', content: text }],
  ...more,
})

export const messageText = (text: string, more: object = {}): string => JSON.stringify(message(text, more))
