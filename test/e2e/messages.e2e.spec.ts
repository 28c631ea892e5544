import type { Anthropic } from '@anthropic-ai/sdk'
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { ANTHROPIC_CLIENTS, COUNT_TOKENS, message, startM1Gateway, type M1Gateway } from '../support/m1-gateway.js'
import { lastRequest } from '../support/last-request.js'
import { UPSTREAM_KEY } from '../support/p1-gateway.js'

let lab: M1Gateway

beforeAll(async () => {
  lab = await startM1Gateway()
})
afterEach(() => {
  lab.simulator.reset()
})
afterAll(() => lab.close())

const WEATHER: Anthropic.Tool = {
  name: 'get_weather',
  description: 'Weather by city',
  input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}
const THINKING = { thinking: { type: 'enabled', budget_tokens: 1024 }, max_tokens: 2000 } as const

describe.each(ANTHROPIC_CLIENTS)('%s', (_name, makeClient, version, keyHeader) => {
  let client: Anthropic
  beforeAll(() => {
    client = makeClient(lab.gateway)
  })

  it('creates a message with its usage and our request id', async () => {
    const answer = await client.messages.create(message('Hello'))
    expect(answer).toMatchObject({
      type: 'message',
      role: 'assistant',
      model: 'claude-sonnet-4-6',
      content: [{ type: 'text', text: 'You said: Hello' }],
      stop_reason: 'end_turn',
      usage: { cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: expect.any(Number) },
    })
    expect(answer._request_id).toMatch(/^req_[0-9a-f]{32}$/)
    expect(lab.simulator.violations).toEqual([])
  })

  it('speaks its own version to the upstream, with the key of the channel', async () => {
    await client.messages.create(message('Hello'))
    const { headers } = lastRequest(lab.simulator)
    expect(headers).toMatchObject({
      'anthropic-version': version,
      'x-api-key': UPSTREAM_KEY,
      'content-type': 'application/json',
    })
    expect(headers).not.toHaveProperty('authorization')
    expect(JSON.stringify(headers)).not.toMatch(/stainless|test-gateway-key|Anthropic\/JS/)
    expect(keyHeader).toMatch(/^(x-api-key|authorization)$/)
  })

  it('iterates the raw events of a stream to message_stop', async () => {
    const types: string[] = []
    for await (const event of await client.messages.create({ ...message('#chunks=5'), stream: true })) {
      types.push(event.type)
    }
    expect(types.at(0)).toBe('message_start')
    expect(types.filter((type) => type === 'content_block_delta')).toHaveLength(5)
    expect(types.slice(-2)).toEqual(['message_delta', 'message_stop'])
  })

  it('collects a stream into its final message', async () => {
    const final = await client.messages.stream(message('Hello you')).finalMessage()
    expect(final).toMatchObject({
      content: [{ type: 'text', text: 'You said: Hello you' }],
      stop_reason: 'end_turn',
      usage: { output_tokens: 4 },
    })
  })

  it('thinks, streamed or not, and gets the signature', async () => {
    const plain = await client.messages.create(message('Why?', THINKING))
    expect(plain.content.map(({ type }) => type)).toEqual(['thinking', 'text'])
    const streamed = await client.messages.stream(message('Why?', THINKING)).finalMessage()
    expect(streamed.content[0]).toEqual(plain.content[0])
    expect(streamed.content[0]).toMatchObject({ signature: expect.stringMatching(/.{20}/) })
  })

  it.each([false, true])('completes a loop of tools with thinking (streamed: %s)', async (isStreamed) => {
    const request = { ...message('What is the weather?', THINKING), tools: [WEATHER] }
    const ask = (body: typeof request): Promise<Anthropic.Message> =>
      isStreamed ? client.messages.stream(body).finalMessage() : client.messages.create(body)
    const first = await ask(request)
    expect(first.stop_reason).toBe('tool_use')
    const call = first.content.find((block) => block.type === 'tool_use')
    expect(call).toMatchObject({ name: 'get_weather', input: { city: expect.any(String) } })
    const result = { type: 'tool_result', tool_use_id: call?.id ?? '', content: '21 degrees' } as const
    const messages = [
      ...request.messages,
      { role: 'assistant', content: first.content },
      { role: 'user', content: [result] },
    ]
    // The upstream refuses thinking that was edited or moved on the way.
    const second = await ask({ ...request, messages } as typeof request)
    expect(second.content.at(-1)).toMatchObject({ type: 'text', text: 'The tools answered: 21 degrees' })
  })

  it('counts tokens', async () => {
    const { input_tokens: tokens } = await client.messages.countTokens({
      model: 'claude-sonnet-4-6',
      messages: [{ role: 'user', content: 'Hello you there' }],
      tools: [WEATHER],
    })
    expect(tokens).toBeGreaterThan(10)
    expect(lab.simulator.lastRequest?.path).toBe(COUNT_TOKENS)
  })

  it('relays beta features: the header, and the query where it sends one', async () => {
    const betas = ['interleaved-thinking-2025-05-14', 'other-2026-01-01']
    const direct = makeClient(lab.simulator, { apiKey: UPSTREAM_KEY })
    for (const to of [direct, client]) await to.beta.messages.create({ ...message('Hello'), betas })
    const [sent, relayed] = lab.simulator.requests
    expect(relayed?.headers['anthropic-beta']).toBe(betas.join(','))
    expect(relayed?.query.toString()).toBe(sent?.query.toString())
  })

  it('ends the work of the upstream when its stream is aborted, and logs the usage so far', async () => {
    lab.simulator.queueFault('stall')
    const aborted = lab.simulator.nextAbort()
    const request = { ...message('#chunks=20'), stream: true } as const
    const { data: stream, request_id: requestId } = await client.messages.create(request).withResponse()
    for await (const event of stream) if (event.type === 'message_start') break
    stream.controller.abort()
    await aborted
    const usage = { units: { input_tokens: expect.any(Number) }, estimated: true }
    expect(await lab.gateway.logLine(String(requestId))).toMatchObject({ status: 499, usage })
  })
})
