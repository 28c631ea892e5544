import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { helloMessage, M1SimulatorLab, tool } from '../../test/chat-simulator-labs.js'

const lab = new M1SimulatorLab()
const { post } = lab

beforeAll(() => lab.start())
afterEach(() => {
  lab.simulator.reset()
})
afterAll(() => lab.close())

describe('the wire format of messages', () => {
  it('names every event by its type, pings once, and sends no [DONE]', async () => {
    const raw = await (await post({ ...helloMessage, stream: true })).text()
    const frames = raw.trimEnd().split('\n\n')
    const names = frames.map((frame) => {
      const [name, data] = frame.split('\n')
      const parsed = JSON.parse(data?.slice('data: '.length) ?? '') as { type: string }
      expect(name).toBe(`event: ${parsed.type}`)
      return parsed.type
    })
    expect(names.slice(0, 3)).toEqual(['message_start', 'content_block_start', 'ping'])
    expect(names.slice(-3)).toEqual(['content_block_stop', 'message_delta', 'message_stop'])
    expect(raw).toMatch(/ +\}\n\n/)
    expect(raw).not.toContain('[DONE]')
  })

  it('starts tool input with an empty piece', async () => {
    const raw = await (await post({ ...helloMessage, tools: [tool], stream: true })).text()
    const pieces = [...raw.matchAll(/"partial_json":("(?:[^"\\]|\\.)*")/g)].map(
      (match) => JSON.parse(match[1] ?? '') as string,
    )
    expect(pieces[0]).toBe('')
    expect(pieces.join('')).toBe('{"city":"Paris"}')
  })

  it('says why it stopped', async () => {
    const limited = await lab.client.messages.create({ ...helloMessage, max_tokens: 2 })
    expect(limited).toMatchObject({ stop_reason: 'max_tokens', usage: { output_tokens: 2 } })
    const stopped = await lab.client.messages.create({ ...helloMessage, stop_sequences: ['there'] })
    expect(stopped).toMatchObject({ stop_reason: 'stop_sequence', stop_sequence: 'there' })
  })

  it('writes marked blocks to the cache once and reads them afterwards', async () => {
    const system = [
      {
        type: 'text' as const,
        text: 'Be short. '.repeat(50),
        cache_control: { type: 'ephemeral' as const, ttl: '1h' as const },
      },
    ]
    const first = (await lab.client.messages.create({ ...helloMessage, system })).usage
    const second = (await lab.client.messages.create({ ...helloMessage, system })).usage
    expect(first.cache_creation?.ephemeral_1h_input_tokens).toBe(first.cache_creation_input_tokens)
    expect(second).toMatchObject({
      cache_read_input_tokens: first.cache_creation_input_tokens,
      cache_creation_input_tokens: 0,
    })
    expect(second.input_tokens).toBe(first.input_tokens)
  })

  it('sends its rate limits, request id and what a relay must hide', async () => {
    const response = await post(helloMessage)
    expect(response.headers.get('request-id')).toMatch(/^req_/)
    expect(response.headers.get('x-request-id')).toBeNull()
    expect(response.headers.get('anthropic-organization-id')).toBe('org-simulated')
    expect(response.headers.get('anthropic-ratelimit-tokens-reset')).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
    expect(lab.simulator.violations).toEqual([])
  })

  it('notes two credentials as a violation', async () => {
    await post(helloMessage, { authorization: 'Bearer sk-caller' })
    expect(lab.simulator.violations).toEqual(['forwarded header: authorization'])
  })
})
