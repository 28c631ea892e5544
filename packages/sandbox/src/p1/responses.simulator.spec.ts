import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import type OpenAI from 'openai'
import { ResponsesSimulatorLab, weather } from '../../test/chat-simulator-labs.js'

type Params = Omit<OpenAI.Responses.ResponseCreateParamsNonStreaming, 'stream'>
type InputItems = OpenAI.Responses.ResponseInputItem[]

const lab = new ResponsesSimulatorLab()

beforeAll(() => lab.start())
afterEach(() => {
  lab.simulator.reset()
})
afterAll(() => lab.close())

const good = { model: 'gpt-4o-mini', input: 'hello there' }
const tool = { type: 'function' as const, strict: false, ...weather.function }
const write = { type: 'custom' as const, name: 'write' }
const thinking: Params = { model: 'gpt-5', input: 'hello there', reasoning: { effort: 'low', summary: 'auto' } }
const readAll = async (stream: AsyncIterable<unknown>): Promise<void> => {
  for await (const event of stream) expect(event).toBeDefined()
}
const typesOf = (events: readonly { readonly type: string }[]): string[] =>
  events.map(({ type }) => type).filter((type, index, all) => type !== all[index - 1])

describe('the official SDK against the P1 simulator of responses', () => {
  it('gets a complete answer that says back what was asked, with usage and ids as the real ones', async () => {
    const response = await lab.client.responses.create({ ...good, instructions: 'Be kind.', metadata: { a: 'b' } })
    expect(response).toMatchObject({
      object: 'response',
      status: 'completed',
      model: 'gpt-4o-mini-2024-07-18',
      output_text: 'You said: hello there',
      error: null,
      incomplete_details: null,
      instructions: 'Be kind.',
      metadata: { a: 'b' },
      tool_choice: 'auto',
      tools: [],
      temperature: 1,
      top_p: 1,
      text: { format: { type: 'text' }, verbosity: 'medium' },
      usage: {
        input_tokens: 16,
        input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
        output_tokens: 4,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: 20,
      },
    })
    expect(response.id).toMatch(/^resp_[0-9a-f]{50}$/)
    expect(response.output[0]?.id).toMatch(/^msg_[0-9a-f]{50}$/)
    expect(response._request_id).toMatch(/^req_/)
    const units = { promptTokens: 16, completionTokens: 4 }
    expect(lab.simulator.served.answers['gpt-4o-mini']?.at(-1)).toEqual(units)
  })

  const scenarios: readonly [string, Params, string[]][] = [
    ['words', good, ['message']],
    ['thoughts and words', thinking, ['reasoning', 'message']],
    ['a call', { ...good, tools: [tool] }, ['function_call']],
    [
      'calls of both kinds',
      { ...good, input: 'write and get_weather', tools: [tool, write] },
      ['function_call', 'custom_tool_call'],
    ],
    ['a forced call', { ...thinking, tools: [tool, write], tool_choice: write }, ['reasoning', 'custom_tool_call']],
    ['words in spite of hosted tools', { ...good, tools: [{ type: 'web_search' }] }, ['message']],
    ['words of a model of this endpoint alone', { ...good, model: 'gpt-5.1-codex' }, ['reasoning', 'message']],
  ]

  it.each(scenarios)('gets %s whole and assembles the same from the stream', async (_name, params, types) => {
    const whole = await lab.client.responses.create(params)
    const stream = lab.client.responses.stream(params)
    const assembled: unknown[] = []
    stream.on('response.output_item.done', ({ item }) => assembled.push(item))
    const final = await stream.finalResponse()
    expect(whole.output.map(({ type }) => type)).toEqual(types)
    const without = (output: unknown): unknown =>
      JSON.parse(
        JSON.stringify(output)
          .replace(/(rs|msg|fc|ctc|call)_[0-9a-zA-Z]+/g, '$1')
          .replace(/"parsed(_arguments)?":null,?/g, ''),
      )
    expect(without(assembled)).toEqual(without(whole.output))
    expect(assembled).toMatchObject(final.output.map(({ id, type }) => ({ id, type })))
    expect(final.usage).toEqual(whole.usage)
    expect(final.output_text).toBe(whole.output_text)
  })

  it('parses an answer by its schema', async () => {
    const schema = {
      type: 'object',
      properties: { city: { type: 'string', enum: ['Rome'] } },
      required: ['city'],
      additionalProperties: false,
    }
    const text = { format: { type: 'json_schema' as const, name: 'place', strict: true, schema } }
    const response = await lab.client.responses.parse({ ...good, text })
    expect(response.output_parsed).toEqual({ city: 'Rome' })
  })

  it('takes the result of a call, by the previous response or by the items themselves', async () => {
    const first = await lab.client.responses.create({ ...thinking, tools: [tool] })
    const call = first.output.find((item) => item.type === 'function_call')
    expect(call?.call_id).toMatch(/^call_[0-9a-zA-Z]{24}$/)
    const result = { type: 'function_call_output' as const, call_id: call?.call_id ?? '', output: 'sunny' }
    const params = { ...thinking, tools: [tool] }
    const byId = await lab.client.responses.create({ ...params, previous_response_id: first.id, input: [result] })
    const question = { role: 'user' as const, content: 'hello there' }
    const byItems = await lab.client.responses.create({
      ...params,
      input: [question, ...(first.output as InputItems), result],
    })
    const references = first.output.map(({ id }) => ({ type: 'item_reference' as const, id: id ?? '' }))
    const byReference = await lab.client.responses.create({ ...params, input: [question, ...references, result] })
    for (const { output_text, usage } of [byId, byItems, byReference]) {
      expect(output_text).toBe('The tools answered: sunny')
      expect(usage?.input_tokens).toBe(byId.usage?.input_tokens)
    }
  })

  it('takes back what it encrypted, without having kept anything', async () => {
    const params: Params = { ...thinking, store: false, include: ['reasoning.encrypted_content'] }
    const first = await lab.client.responses.create(params)
    await expect(lab.client.responses.retrieve(first.id)).rejects.toMatchObject({ status: 404 })
    const [reasoning] = first.output
    expect(reasoning).toMatchObject({ encrypted_content: expect.stringMatching(/^gAAAAAB/) })
    const more = { role: 'user' as const, content: 'and now?' }
    const next = await lab.client.responses.create({ ...params, input: [...(first.output as InputItems), more] })
    expect(next.output_text).toBe('You said: and now?')
  })

  it('counts the beginning of a long conversation as cached', async () => {
    const first = await lab.client.responses.create({ ...good, input: 'word '.repeat(1000) })
    const next = await lab.client.responses.create({ ...good, previous_response_id: first.id })
    expect(next.usage?.input_tokens_details.cached_tokens).toBe(2432)
  })

  it('refuses, or is filtered, where the text asks for it', async () => {
    const refused = await lab.client.responses.stream({ ...good, input: '#refuse' }).finalResponse()
    const refusal = { type: 'refusal', refusal: 'I cannot help with that.' }
    expect(refused).toMatchObject({ status: 'completed', output: [{ status: 'completed', content: [refusal] }] })
    expect(await lab.client.responses.create({ ...good, input: '#filter #words=9' })).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'content_filter' },
      output_text: 'word1 word2 word3',
    })
  })

  it('is incomplete when words or thoughts exceed the limit', async () => {
    const words = await lab.client.responses.create({ ...good, input: '#words=20', max_output_tokens: 16 })
    expect(words).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      output: [{ type: 'message', status: 'incomplete' }],
      usage: { output_tokens: 16 },
    })
    const stream = await lab.client.responses.stream({ ...thinking, max_output_tokens: 16 }).finalResponse()
    expect(stream).toMatchObject({
      status: 'incomplete',
      output: [{ type: 'reasoning' }],
      usage: { output_tokens: 16, output_tokens_details: { reasoning_tokens: 16 } },
    })
  })

  it('counts input tokens as a response does, tools included', async () => {
    const params = { ...good, tools: [tool] }
    const { usage } = await lab.client.responses.create(params)
    const count = await lab.client.responses.inputTokens.count(params)
    expect(count).toEqual({ object: 'response.input_tokens', input_tokens: usage?.input_tokens })
    expect(count.input_tokens).toBeGreaterThan((await lab.client.responses.inputTokens.count(good)).input_tokens)
  })
})

describe('the events of a response', () => {
  it('come in order, numbered from 0, and hide their length unless asked not to', async () => {
    const events = await lab.eventsOf(await lab.send('', { ...thinking, stream: true }))
    expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_event, index) => index))
    expect(typesOf(events)).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.reasoning_summary_part.added',
      'response.reasoning_summary_text.delta',
      'response.reasoning_summary_text.done',
      'response.reasoning_summary_part.done',
      'response.output_item.done',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ])
    const delta = events.find(({ type }) => type === 'response.output_text.delta')
    expect(delta).toMatchObject({
      output_index: 1,
      content_index: 0,
      delta: 'You',
      logprobs: [],
      obfuscation: expect.any(String),
    })
    const plain = { ...thinking, stream: true, stream_options: { include_obfuscation: false } }
    expect(await (await lab.send('', plain)).text()).not.toContain('obfuscation')
  })

  it('carry the arguments of calls and the input of custom tools', async () => {
    const asked = { ...good, input: 'write and get_weather', tools: [tool, write], stream: true }
    const events = await lab.eventsOf(await lab.send('', asked))
    const call = ['response.output_item.added', 'response.function_call_arguments.delta']
    const custom = ['response.output_item.added', 'response.custom_tool_call_input.delta']
    expect(typesOf(events).slice(2)).toEqual([
      ...call,
      'response.function_call_arguments.done',
      'response.output_item.done',
      ...custom,
      'response.custom_tool_call_input.done',
      'response.output_item.done',
      'response.completed',
    ])
    const done = events.find(({ type }) => type === 'response.function_call_arguments.done')
    expect(done).toMatchObject({ arguments: '{"city":"Paris"}', name: 'get_weather', output_index: 0 })
  })

  it('have log probabilities on request', async () => {
    const asked = { ...good, stream: true, include: ['message.output_text.logprobs'] }
    const events = await lab.eventsOf(await lab.send('', asked))
    const delta = events.find(({ type }) => type === 'response.output_text.delta')
    expect(delta?.['logprobs']).toMatchObject([{ token: 'You', logprob: -0.01 }])
  })

  it('end with the failure of the upstream', async () => {
    const events = await lab.eventsOf(await lab.send('', { ...good, input: '#errorframe', stream: true }))
    expect(events.map(({ type }) => type)).toEqual([
      'response.created',
      'response.in_progress',
      'error',
      'response.failed',
    ])
    expect(events.at(-1)).toMatchObject({
      sequence_number: 3,
      response: { status: 'failed', error: { code: 'server_error' } },
    })
  })

  it('are charged as far as they were written', async () => {
    lab.simulator.queueFault('cut')
    const stream = await lab.client.responses.create({ ...good, input: '#words=50', stream: true })
    await expect(readAll(stream)).rejects.toThrow()
    await lab.simulator.idle()
    const units = lab.simulator.served.answers['gpt-4o-mini']?.at(-1)
    expect(units?.['promptTokens']).toBeGreaterThan(0)
    expect(units?.['completionTokens'] ?? 0).toBeLessThan(50)
  })

  it.each([
    ['#500', 500],
    ['#429', 429],
    ['#quota', 429],
  ])('are not begun for %s', async (input, status) => {
    expect((await lab.send('', { ...good, input, stream: true })).status).toBe(status)
    const items = [{ role: 'user', content: [{ type: 'input_text', text: input }] }]
    expect((await lab.send('', { ...good, input: items })).status).toBe(status)
  })
})
