import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { ChatSimulatorLab, hello, weather } from '../../test/chat-simulator-lab.js'

const lab = new ChatSimulatorLab()
const { framesOf, post } = lab

beforeAll(() => lab.start())
afterEach(() => {
  lab.simulator.reset()
})
afterAll(() => lab.close())

describe('the wire format of chat', () => {
  it('prints bodies with two-space indent and its own headers', async () => {
    const response = await post({ model: 'gpt-4o-mini', messages: hello })
    expect(await response.text()).toMatch(/^\{\n {2}"id": "chatcmpl-[\w-]+",\n {2}"object": "chat.completion",\n/)
    for (const name of ['openai-organization', 'set-cookie', 'openai-processing-ms', 'x-ratelimit-reset-tokens']) {
      expect(response.headers.get(name)).not.toBeNull()
    }
    expect(lab.simulator.violations).toEqual([])
  })

  it('repeats one envelope in every chunk and sends no usage unless asked', async () => {
    const frames = await framesOf({ model: 'gpt-4o-mini', messages: hello })
    expect(new Set(frames.map((frame) => [frame['id'], frame['created'], frame['model']].join())).size).toBe(1)
    expect(frames.every((frame) => !('usage' in frame) && 'obfuscation' in frame)).toBe(true)
    expect(frames[0]?.['choices']).toEqual([
      { index: 0, delta: { role: 'assistant', content: '', refusal: null }, logprobs: null, finish_reason: null },
    ])
    expect(frames.at(-1)?.['choices']).toEqual([{ index: 0, delta: {}, logprobs: null, finish_reason: 'stop' }])
  })

  it('sends usage null in each chunk and the totals in an extra one when asked', async () => {
    const frames = await framesOf({
      model: 'gpt-4o-mini',
      messages: hello,
      stream_options: { include_usage: true, include_obfuscation: false },
    })
    expect(frames.slice(0, -1).every((frame) => frame['usage'] === null)).toBe(true)
    expect(frames.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 4 } })
    expect(frames.every((frame) => !('obfuscation' in frame))).toBe(true)
  })

  it('streams tool calls: opening with empty arguments, pieces by index, then finish_reason', async () => {
    const frames = await framesOf({
      model: 'gpt-4o-mini',
      messages: [{ role: 'user', content: 'call get_weather and get_time' }],
      tools: [weather, { type: 'function', function: { name: 'get_time' } }],
    })
    const deltas = frames.map((frame) => (frame['choices'] as { delta: Record<string, unknown> }[])[0]?.delta ?? {})
    const calls = deltas.flatMap(
      (delta) => (delta['tool_calls'] ?? []) as { index: number; id?: string; function: { arguments: string } }[],
    )
    const opened = calls.filter((call) => call.id !== undefined)
    expect(opened.map((call) => call.function)).toEqual([
      { name: 'get_weather', arguments: '' },
      { name: 'get_time', arguments: '' },
    ])
    const joined = calls.filter((call) => call.index === 0).map((call) => call.function.arguments)
    expect(joined.join('')).toBe('{"city":"Paris"}')
    expect(frames.at(-1)).toMatchObject({ choices: [{ finish_reason: 'tool_calls' }] })
  })

  it('streams spoken answers in the recorded order, without any finish_reason stop', async () => {
    const frames = await framesOf({
      model: 'gpt-audio-1.5',
      modalities: ['text', 'audio'],
      audio: { voice: 'alloy', format: 'pcm16' },
      messages: hello,
      stream_options: { include_usage: true },
    })
    const kinds = frames.map((frame) => {
      const choices = frame['choices'] as { delta?: { role?: string; audio?: object } }[] | undefined
      if (choices === undefined) return 'filler'
      if (choices.length === 0) return 'usage'
      return choices[0]?.delta?.role ?? Object.keys(choices[0]?.delta?.audio ?? {}).join('+')
    })
    const order = kinds.filter((kind, index) => kind !== kinds[index - 1])
    expect(order.slice(0, 3)).toEqual(['assistant', 'id+transcript', 'filler'])
    expect(order.slice(-4)).toEqual(['assistant', 'data', 'usage', 'expires_at'])
    expect(JSON.stringify(frames)).not.toContain('"finish_reason":"stop"')
  })

  it('ends with length at max_tokens and with stop at a stop sequence', async () => {
    const limited = await lab.client.chat.completions.create({
      model: 'gpt-4o',
      messages: hello,
      max_completion_tokens: 2,
    })
    expect(limited.choices[0]).toMatchObject({ finish_reason: 'length', message: { content: 'You said:' } })
    const stopped = await lab.client.chat.completions.create({ model: 'gpt-4o', messages: hello, stop: ['hello'] })
    expect(stopped.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: 'You said: ' } })
  })

  it('makes as many chunks or words as the magic text says', async () => {
    const frames = await framesOf({ model: 'gpt-4o', messages: [{ role: 'user', content: '#chunks=500' }] })
    expect(frames).toHaveLength(502)
    const words = await lab.client.chat.completions.create({
      model: 'gpt-4o',
      messages: [{ role: 'user', content: '#words=700' }],
    })
    expect(words.choices[0]?.message.content?.split(' ')).toHaveLength(700)
  })
})
