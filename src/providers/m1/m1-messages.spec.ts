import { describe, expect, it } from '@jest/globals'
import { ManualSource } from '../../../test/support/byte-streams.js'
import { attemptOf } from '../../../test/support/raw-upstream.js'
import type { GatewayError } from '../../core/errors.js'
import { RequestContext, type Usage } from '../../core/request-context.js'
import type { AttemptContext } from '../contract.js'
import { MessagesEstimate, MessagesUsage, parseM1Error, WholeMessage } from './m1-messages.js'

const CONTEXT: AttemptContext = {
  ...attemptOf(new RequestContext('req_of_key-gateway', 'POST', '/v1/messages', 0)),
  channelId: 'm1',
  target: {
    poolKey: 'm1',
    origin: 'http://127.0.0.1:1',
    pathPrefix: '',
    timeouts: { connectMs: 1, firstByteMs: 1, idleMs: 1, totalMs: 1 },
  },
  credentials: 'secret',
  callersKey: false,
  upstreamModel: 'm',
  modelMap: {},
  options: {},
  deadlineAtMs: 0,
}

async function refusal(status: number, body: object): Promise<GatewayError> {
  const source = new ManualSource()
  const reading = parseM1Error({ status, headers: {}, body: source }, CONTEXT)
  source.data(JSON.stringify(body))
  source.end()
  return await reading
}

const bodyOf = (type: string, message: string): object => ({
  type: 'error',
  error: { type, message, details: null },
  request_id: 'req_011CUpstream',
})

describe('A refusal of the messages upstream', () => {
  it('is relayed with its type and other keys, scrubbed, under the request id of the gateway', async () => {
    const { details } = await refusal(400, bodyOf('invalid_request_error', 'max_tokens: see https://docs.canary.com'))
    expect(details.relayed?.status).toBe(400)
    expect(JSON.parse(details.relayed?.body ?? '')).toEqual({
      type: 'error',
      error: { type: 'invalid_request_error', message: 'max_tokens: see [address]', details: null },
      request_id: 'req_of_key-gateway',
    })
  })

  it.each([
    [404, 'not_found_error', 'unknown_model'],
    [413, 'request_too_large', 'payload_too_large'],
    [401, 'authentication_error', 'upstream_failed'],
    [403, 'permission_error', 'upstream_failed'],
    [402, 'billing_error', 'upstream_failed'],
    [429, 'rate_limit_error', 'rate_limited'],
    [500, 'api_error', 'upstream_failed'],
    [529, 'overloaded_error', 'upstream_overloaded'],
  ])('%i %s becomes %s', async (status, type, kind) => {
    expect(await refusal(status, bodyOf(type, 'Words.'))).toMatchObject({ kind })
  })

  it('is the fault of the channel when its balance is empty, although the status is 400', async () => {
    const message = 'Your credit balance is too low to access the API. Please go to Plans & Billing.'
    expect(await refusal(400, bodyOf('invalid_request_error', message))).toMatchObject({
      kind: 'upstream_failed',
      details: { attempt: { channelError: true }, retryable: false },
    })
  })

  it('is not taken for an empty balance because a caller’s words are quoted in it', async () => {
    const message = 'messages.0: unexpected value "Your credit balance is too low"'
    expect(await refusal(400, bodyOf('invalid_request_error', message))).toMatchObject({ kind: 'invalid_request' })
  })
})

const unitsOf = (request: object, count = 0): object => new MessagesEstimate(request, { count }).estimate().units
const inputOf = (request: object): unknown => (unitsOf(request) as { input_tokens: unknown }).input_tokens
const saidIn = (content: unknown): number => new WholeMessage(Buffer.from(JSON.stringify({ content }))).count

describe('The estimate of a messages call', () => {
  it.each([
    ['a text', { messages: [{ role: 'user', content: '12345678' }] }, 4 + 2],
    ['two of them', { messages: [{ content: '1234' }, { content: '你好' }] }, 4 + 1 + 4 + 2],
    ['blocks of text, no pictures', { messages: [{ content: [{ text: '1234' }, { source: { data: 'AAAA' } }] }] }, 5],
    ['a call of a tool', { messages: [{ content: [{ type: 'tool_use', input: { a: 1 } }] }] }, 4 + 2],
    ['what a tool has answered', { messages: [{ content: [{ content: [{ text: '1234' }] }] }] }, 5],
    ['what the system says', { system: '1234', messages: [] }, 1],
    ['the same in blocks', { system: [{ text: '1234' }], messages: [] }, 1],
    ['its tools', { tools: [{ name: 'x' }], messages: [] }, 4],
    ['its form alone of what is no message', { messages: [3, null] }, 8],
  ])('has as its input %s', (_what, request, tokens) => {
    expect(inputOf(request)).toBe(tokens)
  })

  it('has as its output the pieces that came', () => {
    expect(unitsOf({ messages: [] }, 7)).toEqual({ input_tokens: 0, output_tokens: 7 })
  })

  it('says nothing of an output of which no pieces were counted', () => {
    const { units } = new MessagesEstimate({ messages: [{ content: '1234' }] }).estimate()
    expect(units).toEqual({ input_tokens: 4 + 1 })
  })

  it('is, beside what its upstream has said, the pieces that came, and the request is not looked at', () => {
    const request = {
      get messages(): never {
        throw new Error('looked at')
      },
    }
    expect(new MessagesEstimate(request, { count: 7 }).countedUnits()).toEqual({ output_tokens: 7 })
    expect(new MessagesEstimate(request).countedUnits()).toBeUndefined()
  })

  it('gives way to whatever its upstream has said', () => {
    const said = { units: { input_tokens: 70, output_tokens: 7 }, estimated: true }
    const reported = { estimate: () => said }
    expect(new MessagesEstimate({ messages: [] }, { count: 7 }, reported).estimate()).toBe(said)
  })

  it.each([
    ['texts', [{ type: 'text', text: 'Hello there.' }], 3],
    ['thoughts and calls', [{ thinking: '1234' }, { type: 'tool_use', input: { a: 1 } }], 3],
    ['nothing else', 3, 0],
  ])('counts of a whole answer %s', (_what, content, tokens) => {
    expect(saidIn(content)).toBe(tokens)
  })

  it.each([
    ['is broken', '{"content":['],
    ['cannot be written again', `{"content":[{"input":{"a":${'['.repeat(400_000)}${']'.repeat(400_000)}}}]}`],
  ])('is nothing of an answer that %s', (_what, text) => {
    expect(new WholeMessage(Buffer.from(text)).count).toBe(0)
  })
})

const START =
  'event: message_start\ndata: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":25,"output_tokens":1}}}\n\n'
const DELTA = 'event: message_delta\ndata: {"type":"message_delta","usage":{"output_tokens":15}}\n\n'
const TEXT =
  'event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"text":"event: message_delta {\\"usage\\":1}"}}\n\n'

interface Reading {
  readonly found: Usage[]
  readonly soFar: Usage | undefined
  readonly passed: string
}

function readWith(count: number, ...regions: string[]): Reading {
  const found: Usage[] = []
  const usage = new MessagesUsage({ count }, (one) => found.push(one))
  const passed = regions.map((region) => usage.filter(Buffer.from(region)).toString()).join('')
  return { found, soFar: usage.estimate(), passed }
}

const read = (...regions: string[]): Reading => readWith(0, ...regions)

describe('MessagesUsage', () => {
  it('takes the input from the start and lets the totals of the end replace the rest', () => {
    expect(read(START, TEXT, DELTA).found).toEqual([
      { units: { input_tokens: 25, output_tokens: 15 }, estimated: false },
    ])
  })

  it('is estimated when the stream is cut: the pieces that came, at least what the start had begun with', () => {
    expect(read(START + TEXT)).toMatchObject({
      found: [],
      soFar: { units: { input_tokens: 25, output_tokens: 1 }, estimated: true },
    })
    expect(readWith(7, START + TEXT).soFar).toEqual({ units: { input_tokens: 25, output_tokens: 7 }, estimated: true })
  })

  it('is unknown before the start', () => {
    expect(readWith(7, TEXT).soFar).toBeUndefined()
  })

  it('lets every byte pass, broken and foreign frames too', () => {
    const text = `${START}event: message_delta\ndata: {broken\n\nevent: message_stop\ndata: {}\n\n${DELTA}`
    expect(read(text).passed).toBe(text)
    expect(read(text.replaceAll('\n', '\r\n')).found).toHaveLength(1)
  })

  it('is not misled by the text of a model', () => {
    expect(read(TEXT).found).toEqual([])
  })
})
