import { describe, expect, it } from '@jest/globals'
import { MessagesEstimate, WholeMessage } from './m1-usage.js'

const unitsOf = (request: object, count = 0): object => new MessagesEstimate(request, { count }).usageSoFar().units
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

  it('says nothing of an output that nobody has counted', () => {
    const { units } = new MessagesEstimate({ messages: [{ content: '1234' }] }).usageSoFar()
    expect(units).toEqual({ input_tokens: 4 + 1 })
  })

  it('is, beside what its upstream has said, the pieces that came, and the request is not looked at', () => {
    const request = {
      get messages(): never {
        throw new Error('looked at')
      },
    }
    expect(new MessagesEstimate(request, { count: 7 }).counted()).toEqual({ output_tokens: 7 })
    expect(new MessagesEstimate(request).counted()).toBeUndefined()
  })

  it('gives way to whatever its upstream has said', () => {
    const said = { units: { input_tokens: 70, output_tokens: 7 }, estimated: true }
    const reported = { usageSoFar: () => said }
    expect(new MessagesEstimate({ messages: [] }, { count: 7 }, reported).usageSoFar()).toBe(said)
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
    ['nobody can write again', `{"content":[{"input":{"a":${'['.repeat(400_000)}${']'.repeat(400_000)}}}]}`],
  ])('is nothing of an answer that %s', (_what, text) => {
    expect(new WholeMessage(Buffer.from(text)).count).toBe(0)
  })
})
