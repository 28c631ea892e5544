import Anthropic, { type ClientOptions } from '@anthropic-ai/sdk'
import { expect } from '@jest/globals'
import { startM1Simulator } from '@multi-model-gateway/sandbox/m1/m1.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator-server.js'
import Anthropic1 from 'anthropic-sdk-1'
import { type RawAnswer, TEST_KEY, type TestGateway } from './gateway.js'
import { type ProviderLab, type ProviderLabOptions, startProviderLab, UPSTREAM_KEY } from './provider-gateways.js'

export interface MessagesError {
  readonly type: string
  readonly error: { readonly type: string; readonly message: string }
  readonly request_id: string
}

/** The whole body is compared: no other key may stand in it. */
export function expectError(answer: RawAnswer, status: number, type: string, words: RegExp = /.{10}/): void {
  const body = JSON.parse(answer.text) as MessagesError
  expect({ status: answer.status, body }).toEqual({
    status,
    body: {
      type: 'error',
      error: { type, message: expect.stringMatching(words) },
      request_id: answer.headers['request-id'],
    },
  })
  expect(answer.headers['content-type']).toBe('application/json')
  expect(answer.headers['x-request-id']).toBe(answer.headers['request-id'])
  expect(answer.headers['request-id']).toMatch(/^req_[0-9a-f]{32}$/)
  expect(answer.text).not.toMatch(/req_011|org-simulated|upstream-canary-key/)
}

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
const anthropic1: MakeAnthropic = (gateway, options) =>
  new Anthropic1(settings(gateway, options) as ConstructorParameters<typeof Anthropic1>[0]) as unknown as Anthropic

/** Rows for `describe.each`. */
export const ANTHROPIC_CLIENTS = [
  ['@anthropic-ai/sdk 0.137.0', anthropic0],
  ['@anthropic-ai/sdk 1.11.0', anthropic1],
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
