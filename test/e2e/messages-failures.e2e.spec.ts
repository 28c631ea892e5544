import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import type { FaultName } from '@multi-model-gateway/sandbox/server/faults.js'
import { TEST_KEY } from '../support/gateway.js'
import {
  anthropic0,
  anthropic1,
  type M1Gateway,
  message,
  MESSAGES,
  messageText,
  startM1Gateway,
} from '../support/m1-gateway.js'
import { expectError, type MessagesError } from '../support/messages-errors.js'
import { type RawAnswer, type RawRequest, sendRaw } from '../support/raw-http.js'
import { SHORT_TIMEOUTS } from '../support/upstream-faults.js'

const LIMITED_KEY = 'limited-gateway-key'
const keys = [
  { id: 'test', key: TEST_KEY },
  { id: 'limited', key: LIMITED_KEY, models: ['claude-haiku-*'] },
]

let lab: M1Gateway
/** Waits half a second for an upstream that says nothing; only for faults that are nothing but silence. */
let impatient: M1Gateway

beforeAll(async () => {
  lab = await startM1Gateway({ keys, sections: { limits: { jsonBodyBytes: 20_000 } } })
  impatient = await startM1Gateway({ channel: SHORT_TIMEOUTS })
})
afterEach(() => {
  lab.simulator.reset()
  impatient.simulator.reset()
})
afterAll(async () => {
  await lab.close()
  await impatient.close()
})

const send = (body: string | Buffer, more: Partial<RawRequest> = {}, target = lab): Promise<RawAnswer> =>
  sendRaw(target.gateway.url, { path: MESSAGES, body, ...more })

/** How a failed upstream looks to the caller before the first byte. */
const FAULTS: readonly (readonly [FaultName, number, string, RegExp])[] = [
  ['400', 400, 'invalid_request_error', /^messages: Input should be a valid list$/],
  ['404', 404, 'not_found_error', /^model: this-model$/],
  ['413', 413, 'request_too_large', /^Request exceeds the maximum size$/],
  ['422', 422, 'invalid_request_error', /could not be processed/],
  ['401', 502, 'api_error', /^The upstream/],
  ['402', 502, 'api_error', /^The upstream/],
  ['403', 502, 'api_error', /^The upstream/],
  ['quota', 502, 'api_error', /^The upstream/],
  ['429', 429, 'rate_limit_error', /^The upstream is busy/],
  ['500', 502, 'api_error', /^The upstream failed/],
  ['503', 502, 'api_error', /^The upstream failed/],
  ['529', 502, 'api_error', /^The upstream failed/],
  ['html', 502, 'api_error', /^The upstream/],
  ['malformed', 502, 'api_error', /^The upstream/],
  ['empty', 502, 'api_error', /^The upstream/],
  ['reset', 502, 'api_error', /^The (upstream|connection)/],
  ['hang', 504, 'api_error', /^The upstream/],
]

describe.each([false, true])('an upstream that fails before its first byte (stream: %s)', (stream) => {
  it.each(FAULTS)('with %s is a %i of %s', async (fault, status, type, words) => {
    const target = fault === 'hang' ? impatient : lab
    target.simulator.queueFault(fault)
    const answer = await send(messageText('Hi', { stream }), {}, target)
    expectError(answer, status, type, words)
    expect(answer.text).not.toMatch(/credit balance|invalid x-api-key|organization|billing/)
    expect(target.simulator.requests).toHaveLength(1)
  })

  it('with 429 tells when to come again', async () => {
    lab.simulator.queueFault('429')
    expect((await send(messageText('Hi', { stream }))).headers['retry-after']).toBe('2')
  })
})

const streamed = (fault: FaultName, target = lab): Promise<RawAnswer> => {
  target.simulator.queueFault(fault)
  return send(messageText('#chunks=20', { stream: true }), {}, target)
}

describe('a stream that fails in the middle', () => {
  it("with the upstream's own error event passes that on once, with our request id, and ends", async () => {
    const { text, headers, complete } = await streamed('errorframe')
    expect(complete).toBe(true)
    expect(text.match(/^event: error$/gm)).toHaveLength(1)
    expect(text).not.toContain('event: message_stop')
    const data = JSON.parse(text.slice(text.lastIndexOf('data: ') + 6)) as MessagesError
    expect(data).toMatchObject({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } })
    expect(data.request_id).toBe(headers['request-id'])
    expect(text).toMatch(/event: error\ndata: \{[^\n]*\}\n\n$/)
  })

  it.each([
    ['cut', 'api_error'],
    ['cleancut', 'api_error'],
    ['stall', 'api_error'],
  ] as const)('by a %s ends in one error event and without message_stop', async (fault, type) => {
    const { text, headers, complete } = await streamed(fault, fault === 'stall' ? impatient : lab)
    expect(complete).toBe(true)
    expect(text).toMatch(/^event: message_start\n/)
    expect(text.match(/^event: error$/gm)).toHaveLength(1)
    expect(text).not.toContain('event: message_stop')
    const frames = text.split('\n\n')
    expect(frames.at(-1)).toBe('')
    const [eventLine, data = ''] = frames.at(-2)?.split('\ndata: ') ?? []
    expect(eventLine).toBe('event: error')
    expect(JSON.parse(data)).toEqual({
      type: 'error',
      error: { type, message: expect.stringMatching(/^The (upstream|connection)/) },
      request_id: headers['request-id'],
    })
    // Every other frame is whole.
    for (const frame of frames.slice(0, -1)) expect(frame).toMatch(/^event: \w+\ndata: \{.*\}$/)
  })

  it.each([
    ['@anthropic-ai/sdk 0.137.0', anthropic0],
    ['@anthropic-ai/sdk 1.11.0', anthropic1],
  ] as const)('throws in %s', async (_name, makeClient) => {
    for (const [fault, type] of [
      ['errorframe', 'overloaded_error'],
      ['cut', 'api_error'],
      ['cleancut', 'api_error'],
    ] as const) {
      lab.simulator.queueFault(fault)
      const final = makeClient(lab.gateway).messages.stream(message('#chunks=20')).finalMessage()
      await expect(final).rejects.toMatchObject({ error: { error: { type } } })
    }
  })

  it.each(['cut', 'cleancut', 'stall'] as const)(
    'by a %s is an error before anything is sent when it was no stream',
    async (fault) => {
      const target = fault === 'stall' ? impatient : lab
      target.simulator.queueFault(fault)
      const answer = await send(messageText('Hello there'), {}, target)
      expectError(answer, fault === 'stall' ? 504 : 502, 'api_error')
    },
  )
})

it('no key is ever logged', () => {
  expect(lab.gateway.logText()).toContain('"status":502')
  expect(lab.gateway.logText()).not.toMatch(/canary-key|test-gateway-key|limited-gateway-key/)
})
