import { startM1Simulator } from '@multi-model-gateway/sandbox/m1/m1.simulator.js'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import { expect } from '@jest/globals'
import { CHAT_PATH, chatText, type RawAnswer, type RawRequest } from '../support/gateway.js'
import { MESSAGES, messageText } from '../support/m1-gateway.js'
import { describeProvider } from './provider.contract.js'
import { ANTHROPIC, OPENAI_CHAT } from './provider-lab.js'

const KEY = 'canary4f1d7c0Qz83Lw'
/** Twenty pieces, so that a break comes after the first of them. */
const LONG = '#chunks=20'
const UNKNOWN = '"no_such_field" : {"n":12345678901234567890, "e":1E3}'

const withUnknown = (path: string, text: string): { request: RawRequest; arrives: string } => ({
  request: { path, body: text.replace(/}$/, `, ${UNKNOWN}}`) },
  arrives: UNKNOWN,
})

const bodyOf = ({ text }: RawAnswer): unknown => JSON.parse(text)

describeProvider('chat by P1', {
  provider: 'p1',
  credentials: KEY,
  start: () => startP1Simulator({ apiKey: KEY }),
  forms: [
    {
      name: 'a completion',
      errors: OPENAI_CHAT,
      request: () => ({ path: CHAT_PATH, body: chatText('Hello') }),
      expectAnswer: (answer) => {
        expect(bodyOf(answer)).toMatchObject({ object: 'chat.completion', choices: [{ finish_reason: 'stop' }] })
      },
      unknownFields: withUnknown(CHAT_PATH, chatText('Hello')),
      usage: { estimated: false, units: { prompt_tokens: expect.any(Number), completion_tokens: expect.any(Number) } },
    },
    {
      name: 'a stream',
      errors: OPENAI_CHAT,
      request: () => ({ path: CHAT_PATH, body: chatText(LONG, { stream: true }) }),
      expectAnswer: ({ headers, text }) => {
        expect(headers['content-type']).toMatch(/^text\/event-stream/)
        expect(text).toContain('"finish_reason":"stop"')
      },
      terminator: '[DONE]',
      unknownFields: withUnknown(CHAT_PATH, chatText(LONG, { stream: true })),
      usage: { estimated: false, units: { prompt_tokens: expect.any(Number), completion_tokens: expect.any(Number) } },
    },
  ],
})

describeProvider('messages by M1', {
  provider: 'm1',
  credentials: KEY,
  start: () => startM1Simulator({ apiKey: KEY }),
  forms: [
    {
      name: 'a message',
      errors: ANTHROPIC,
      request: () => ({ path: MESSAGES, body: messageText('Hello') }),
      expectAnswer: (answer) => {
        expect(bodyOf(answer)).toMatchObject({ type: 'message', stop_reason: 'end_turn' })
      },
      unknownFields: withUnknown(MESSAGES, messageText('Hello')),
      usage: { estimated: false, units: { input_tokens: expect.any(Number), output_tokens: expect.any(Number) } },
    },
    {
      name: 'a stream',
      errors: ANTHROPIC,
      request: () => ({ path: MESSAGES, body: messageText(LONG, { stream: true }) }),
      expectAnswer: ({ headers, text }) => {
        expect(headers['content-type']).toMatch(/^text\/event-stream/)
        expect(text).toContain('"stop_reason":"end_turn"')
      },
      terminator: 'message_stop',
      unknownFields: withUnknown(MESSAGES, messageText(LONG, { stream: true })),
      usage: { estimated: false, units: { input_tokens: expect.any(Number), output_tokens: expect.any(Number) } },
    },
  ],
})
