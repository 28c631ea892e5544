import { describe, expect, it } from '@jest/globals'
import { estimateInputTokens } from './anthropic-messages.js'

type Members = Record<string, unknown>

describe('The estimate of the tokens of a prompt', () => {
  const words = (tokens: number): string => 'word'.repeat(tokens)
  const prompt = (...content: Members[]): Members => ({ messages: [{ role: 'user', content }] })
  const EMPTY = prompt()
  const more = (fields: Members, isThinkingRead = true): number =>
    estimateInputTokens({ ...EMPTY, ...fields }, isThinkingRead) - estimateInputTokens(EMPTY, isThinkingRead)

  it('counts system, messages, tools and media', () => {
    const tool = { name: 'look', input_schema: { type: 'object' } }
    expect(more({ system: words(10) })).toBe(10)
    expect(more({ system: [{ type: 'text', text: words(10) }] })).toBe(10)
    expect(more({ tools: [tool] })).toBe(Math.ceil(JSON.stringify([tool]).length / 4))
    expect(more(prompt({ type: 'text', text: words(7), cache_control: { type: 'ephemeral' } }))).toBe(7)
    expect(more({ messages: [{ role: 'user', content: words(7) }] })).toBe(7)
    expect(
      more(prompt({ type: 'tool_result', tool_use_id: 'abcdefgh', content: [{ type: 'text', text: words(7) }] })),
    ).toBe(7)
    expect(more(prompt({ type: 'tool_use', id: 'abcdefgh', name: 'look', input: { x: 1 } }))).toBe(3)
    expect(more(prompt({ type: 'document', title: words(2), source: { type: 'text', data: words(9) } }))).toBe(11)
  })

  it('counts an image and a file as media, not by their characters', () => {
    const data = 'A'.repeat(8000)
    expect(more(prompt({ type: 'image', source: { type: 'base64', media_type: 'image/png', data } }))).toBe(1000)
    expect(more(prompt({ type: 'image', source: { type: 'url', url: 'https://a.test/b.png' } }))).toBe(1000)
    expect(more(prompt({ type: 'tool_result', content: [{ type: 'image', source: { type: 'base64', data } }] }))).toBe(
      1000,
    )
  })

  it('counts documents of blocks, and where a search result was found', () => {
    const content = [{ type: 'text', text: words(5) }]
    expect(more(prompt({ type: 'document', context: words(3), source: { type: 'content', content } }))).toBe(8)
    expect(more(prompt({ type: 'document', source: { type: 'content', content: words(5) } }))).toBe(5)
    expect(more(prompt({ type: 'search_result', title: words(2), source: words(3), content }))).toBe(10)
  })

  it('counts thoughts where the upstream gets them, and never what cannot be read', () => {
    const thoughts = prompt({ type: 'thinking', thinking: words(50), signature: words(50) })
    expect([more(thoughts, true), more(thoughts, false)]).toEqual([50, 0])
    expect(more(prompt({ type: 'redacted_thinking', data: words(50) }))).toBe(0)
  })

  it.each([
    [{}, 0],
    [{ messages: 1, system: 2, tools: 'x' }, 1],
    [{ messages: [null, 1, { content: null }] }, 3 * 4],
    [
      { messages: [{ content: [null, 1, { text: 1, thinking: {}, content: 2, input: [], source: { data: 'A' } }] }] },
      4,
    ],
  ])('takes any shape: %j', (fields, tokens) => {
    expect(estimateInputTokens(fields, true)).toBe(tokens)
  })
})
