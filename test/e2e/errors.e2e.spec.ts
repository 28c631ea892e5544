import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { CHAT_PATH, chatText, SPEECH_PATH, speechText } from '../support/chat-bodies.js'
import { startP1Gateway, UPSTREAM_KEY, type P1Gateway } from '../support/p1-gateway.js'
import { errorOf, sendRaw } from '../support/raw-http.js'
import {
  ACCOUNT_FAULTS,
  CALLER_FAULTS,
  CHANNEL_FAULTS,
  SHORT_TIMEOUTS,
  tooManyRequests,
} from '../support/upstream-faults.js'

let lab: P1Gateway
/** Waits half a second for the first byte; only for the fault that is nothing but silence. */
let impatient: P1Gateway

beforeAll(async () => {
  lab = await startP1Gateway()
  impatient = await startP1Gateway({ channel: SHORT_TIMEOUTS })
})
afterEach(() => {
  lab.simulator.reset()
  impatient.simulator.reset()
})
afterAll(async () => {
  await lab.close()
  await impatient.close()
})

const REQUESTS = [
  ['a chat completion', CHAT_PATH, chatText('Hello'), 'chatStatus'],
  ['a streamed chat completion', CHAT_PATH, chatText('Hello', { stream: true }), 'chatStatus'],
  ['a speech', SPEECH_PATH, speechText('Hello'), 'audioStatus'],
  [
    'a speech as events',
    SPEECH_PATH,
    speechText('Hello', { model: 'gpt-4o-mini-tts', stream_format: 'sse' }),
    'audioStatus',
  ],
] as const

describe.each(REQUESTS)('%s whose upstream fails before its first byte', (_name, path, body, statusColumn) => {
  it.each([...CALLER_FAULTS, ...ACCOUNT_FAULTS, ...CHANNEL_FAULTS])('with $fault is refused as $code', async (row) => {
    const { gateway, simulator } = row.fault === 'hang' ? impatient : lab
    simulator.queueFault(row.fault)
    const answer = await sendRaw(gateway.url, { path, body })
    const { message, ...error } = errorOf(answer)
    expect({ status: answer.status, ...error }).toEqual({
      status: row[statusColumn],
      type: row.type,
      code: row.code,
      param: null,
    })
    expect(answer.headers['x-should-retry']).toBe(row.shouldRetry)
    expect(answer.headers['content-type']).toBe('application/json')
    expect(answer.headers).not.toHaveProperty('openai-organization')
    expect(message).toMatch(
      row.words === undefined ? /^The (upstream|connection)/ : new RegExp(row.words.replace('.', '\\.')),
    )
    expect(answer.text).not.toMatch(/sk-ab|https?:|proj_simulated|org-simulated|127\.0\.0\.1/)
    expect(simulator.requests).toHaveLength(1)
  })

  it('with 429 is told when to come again', async () => {
    lab.simulator.queueFault('429')
    const answer = await sendRaw(lab.gateway.url, { path, body })
    expect(answer.status).toBe(429)
    expect(errorOf(answer)).toMatchObject({ type: 'rate_limit_error', code: 'rate_limit_exceeded', param: null })
    expect(answer.headers['retry-after']).toBe('2')
    expect(answer.text).not.toContain('org-simulated')
  })
})

describe("the upstream's wish to be left alone", () => {
  it.each([
    [{ 'retry-after': '0' }, '1'],
    [{ 'retry-after': '3600' }, '60'],
    [{ 'retry-after': '-5' }, '1'],
    [{ 'retry-after': 'soon' }, '1'],
    [{ 'retry-after-ms': '20', 'retry-after': '30' }, '1'],
    [{ 'retry-after': 'Fri, 31 Dec 2199 23:59:59 GMT' }, '60'],
    [{}, '1'],
  ])('%j becomes %s seconds', async (headers, seconds) => {
    lab.simulator.queueFault(tooManyRequests(headers))
    const answer = await sendRaw(lab.gateway.url, { path: CHAT_PATH, body: chatText('Hello') })
    expect(answer.status).toBe(429)
    expect(answer.headers['retry-after']).toBe(seconds)
    expect(answer.text).not.toContain('org-canary1')
  })
})

describe("the upstream's own words about the caller's fault", () => {
  it('reach the caller with its own type, code and param, without hosts, accounts and keys', async () => {
    const secrets = `at https://internal.example.com/x of org-Canary12 with sk-proj-abcdef123456, Bearer ${UPSTREAM_KEY} on 10.1.2.3:8080`
    const error = {
      message: `Bad \u001b[31m"quote" ${secrets}`,
      type: 'odd_error',
      param: 'messages.[3].role',
      code: 'odd_code',
    }
    const headers = { 'content-type': 'application/json', 'x-request-id': 'req_upstream' }
    lab.simulator.queueFault({ kind: 'status', status: 400, headers, body: JSON.stringify({ error }) })
    const answer = await sendRaw(lab.gateway.url, { path: CHAT_PATH, body: chatText('Hello') })
    expect(errorOf(answer)).toMatchObject({ type: 'odd_error', param: 'messages.[3].role', code: 'odd_code' })
    expect(errorOf(answer).message).toMatch(/^Bad .*"quote"/)
    expect(answer.text).not.toMatch(/example\.com|Canary12|abcdef123456|canary-key|10\.1\.2\.3/)
    expect(answer.headers['x-request-id']).not.toBe('req_upstream')
  })

  it.each([409, 422])('keep their status %i', async (status) => {
    const error = { message: 'Not like this.', type: 'conflict_error', param: null, code: 'odd' }
    lab.simulator.queueFault({ kind: 'status', status, body: JSON.stringify({ error }) })
    const answer = await sendRaw(lab.gateway.url, { path: CHAT_PATH, body: chatText('Hello') })
    expect(answer.status).toBe(status)
    expect(errorOf(answer)).toEqual(error)
  })

  it.each([
    ['no body', ''],
    ['a page', '<html>https://internal.example.com</html>'],
    ['another dialect', '{"detail":"nope"}'],
    ['a list', '[1]'],
  ])('are replaced when they are %s', async (_name, body) => {
    lab.simulator.queueFault({ kind: 'status', status: 400, body })
    const answer = await sendRaw(lab.gateway.url, { path: CHAT_PATH, body: chatText('Hello') })
    expect(answer.status).toBe(400)
    expect(errorOf(answer)).toEqual({
      message: 'The upstream refused the request.',
      type: 'invalid_request_error',
      param: null,
      code: null,
    })
  })

  it('are a failure of the upstream when its status is none of an error', async () => {
    for (const status of [204, 302, 418, 451]) {
      lab.simulator.queueFault({ kind: 'status', status, headers: { location: 'http://127.0.0.1:1/' }, body: '' })
      const answer = await sendRaw(lab.gateway.url, { path: CHAT_PATH, body: chatText('Hello') })
      expect(answer.status).toBe(502)
      expect(errorOf(answer)).toMatchObject({ type: 'upstream_error', code: 'upstream_failed' })
    }
  })
})

it('no key of an upstream or of a caller is ever logged', () => {
  expect(lab.gateway.logText()).toContain('"status":502')
  expect(lab.gateway.logText()).not.toMatch(/canary-key|sk-proj-abcdef|test-gateway-key/)
})
