import Anthropic from '@anthropic-ai/sdk'
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { helloMessage, M1SimulatorLab, tool } from '../../test/chat-simulator-labs.js'
import { signThinking } from './signature.js'

const lab = new M1SimulatorLab()

beforeAll(() => lab.start())
afterEach(() => {
  lab.simulator.reset()
})
afterAll(() => lab.close())

describe('the official SDKs against the M1 simulator', () => {
  it('the old one, with x-api-key, gets a message and its request id', async () => {
    const message = await lab.client.messages.create(helloMessage)
    expect(message.content).toEqual([{ type: 'text', text: 'You said: hello there' }])
    expect(message).toMatchObject({ model: 'claude-sonnet-4-6', stop_reason: 'end_turn', stop_sequence: null })
    expect(message._request_id).toMatch(/^req_011/)
  })

  it('the new one, with Bearer and the new version, gets the same', async () => {
    const message = await lab.newClient.messages.create(helloMessage)
    expect(message.content).toMatchObject([{ type: 'text', text: 'You said: hello there' }])
    expect(lab.simulator.lastRequest?.headers).toMatchObject({ 'anthropic-version': '2026-10-21' })
    expect(lab.simulator.lastRequest?.headers['authorization']).toBe('Bearer sk-ant-test')
  })

  it('both assemble a thinking stream with its signature', async () => {
    const thinking = { type: 'enabled' as const, budget_tokens: 1024 }
    for (const stream of [
      lab.client.messages.stream({ ...helloMessage, max_tokens: 2048, thinking }),
      lab.newClient.messages.stream({ ...helloMessage, max_tokens: 2048, thinking }),
    ]) {
      const final = await stream.finalMessage()
      const [first, second] = final.content
      expect(first).toMatchObject({
        type: 'thinking',
        signature: signThinking(first?.type === 'thinking' ? first.thinking : ''),
      })
      expect(second).toMatchObject({ type: 'text', text: 'You said: hello there' })
      expect(final.usage.output_tokens).toBeGreaterThan(4)
    }
  })

  it('a tool loop with thinking goes through when the blocks come back unchanged', async () => {
    const options = {
      ...helloMessage,
      max_tokens: 2048,
      tools: [tool],
      thinking: { type: 'enabled' as const, budget_tokens: 1024 },
    }
    const first = await lab.client.messages.stream(options).finalMessage()
    expect(first.stop_reason).toBe('tool_use')
    const call = first.content.find((block) => block.type === 'tool_use')
    expect(call?.input).toEqual({ city: 'Paris' })
    const result = { type: 'tool_result' as const, tool_use_id: call?.id ?? '', content: 'sunny' }
    const turn = (content: Anthropic.ContentBlockParam[]): Promise<Anthropic.Message> =>
      lab.client.messages.create({
        ...options,
        messages: [...helloMessage.messages, { role: 'assistant', content }, { role: 'user', content: [result] }],
      })
    const second = await turn(first.content)
    expect(second.content.at(-1)).toMatchObject({ text: 'The tools answered: sunny' })
    await expect(turn(first.content.slice(1))).rejects.toThrow(
      'Expected `thinking` or `redacted_thinking`, but found `tool_use`',
    )
    const edited = first.content.map((block) => (block.type === 'thinking' ? { ...block, thinking: 'edited' } : block))
    await expect(turn(edited)).rejects.toThrow('blocks in the latest assistant message cannot be modified')
  })

  it('counts tokens', async () => {
    const { messages, model } = helloMessage
    expect((await lab.client.messages.countTokens({ model, messages })).input_tokens).toBe(7)
    expect((await lab.newClient.messages.countTokens({ model, messages })).input_tokens).toBe(7)
    const counting = lab.client.messages.countTokens({ model, messages, ...{ max_tokens: 5 } })
    await expect(counting).rejects.toThrow('max_tokens: Extra inputs are not permitted')
  })

  it.each([
    ['#400', Anthropic.BadRequestError, 'invalid_request_error'],
    ['#403', Anthropic.PermissionDeniedError, 'permission_error'],
    ['#404', Anthropic.NotFoundError, 'not_found_error'],
    ['#422', Anthropic.UnprocessableEntityError, 'invalid_request_error'],
    ['#429', Anthropic.RateLimitError, 'rate_limit_error'],
    ['#500', Anthropic.InternalServerError, 'api_error'],
    ['#529', Anthropic.InternalServerError, 'overloaded_error'],
    ['#402', Anthropic.APIError, 'billing_error'],
    ['#413', Anthropic.APIError, 'request_too_large'],
    ['#quota', Anthropic.BadRequestError, 'invalid_request_error'],
  ])('%s raises the right class', async (content, errorClass, type) => {
    const failing = lab.client.messages.create({ ...helloMessage, messages: [{ role: 'user', content }] })
    const error: unknown = await failing.catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(errorClass)
    expect(error).toMatchObject({ error: { error: { type } }, requestID: expect.stringMatching(/^req_/) as unknown })
  })

  it('the new SDK knows 529 by a class of its own', async () => {
    const failing = lab.newClient.messages.create({ ...helloMessage, messages: [{ role: 'user', content: '#529' }] })
    await expect(failing).rejects.toMatchObject({ status: 529 })
  })

  it('an error event in the middle is thrown with its type', async () => {
    const stream = lab.client.messages.stream({
      ...helloMessage,
      messages: [{ role: 'user', content: '#errorframe a b' }],
    })
    await expect(stream.finalMessage()).rejects.toThrow('Overloaded')
  })

  it('a stream without its end is noticed', async () => {
    const stream = lab.client.messages.stream({
      ...helloMessage,
      messages: [{ role: 'user', content: '#cleancut a b c' }],
    })
    await expect(stream.finalMessage()).rejects.toThrow('stream ended without producing a Message')
  })
})
