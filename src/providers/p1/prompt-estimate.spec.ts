import { describe, expect, it } from '@jest/globals'
import { estimatePromptTokens } from './prompt-estimate.js'

const message = (content: unknown, more: object = {}): object => ({ role: 'user', content, ...more })

describe('What a chat request probably costs', () => {
  it.each([
    ['three for the head of the answer', [], 3],
    ['four for each message', [message(''), message(null)], 11],
    ['a token for four ASCII characters, or fewer', [message('12345')], 9],
    ['a token for each other character', [message('日本語😀')], 11],
    ['the texts of its parts', [message([{ type: 'text', text: '1234' }, { text: '5678' }])], 9],
    ['nothing for images and recordings', [message([{ type: 'image_url', image_url: { url: 'data:x' } }])], 7],
    [
      'the calls of tools',
      [message(null, { tool_calls: [{ id: 'call_1' }] })],
      7 + Math.ceil('[{"id":"call_1"}]'.length / 4),
    ],
  ])('is %s', (_name, messages, tokens) => {
    expect(estimatePromptTokens({ messages })).toBe(tokens)
  })

  it('holds the tools that are offered', () => {
    expect(estimatePromptTokens({ messages: [], tools: [{ a: 1 }] })).toBe(3 + 3)
  })
})
