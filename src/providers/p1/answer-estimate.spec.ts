import { describe, expect, it } from '@jest/globals'
import { AnswerEstimate } from './answer-estimate.js'

const countOf = (value: unknown): number => new AnswerEstimate(Buffer.from(JSON.stringify(value))).count
const answer = (...messages: readonly object[]): object => ({ choices: messages.map((message) => ({ message })) })

describe('The estimate of a whole answer', () => {
  it.each([
    ['four ASCII characters to a token', answer({ content: 'Hello there.' }), 3],
    ['one other character to a token', answer({ content: '你好' }), 2],
    ['each choice', answer({ content: '1234' }, { content: '12345' }), 3],
    ['a refusal', answer({ content: null, refusal: '1234' }), 1],
    ['thoughts that are shown', answer({ content: '1234', reasoning_content: '12345678' }), 3],
    ['tool calls as they are written', answer({ content: null, tool_calls: [{ id: 'call_1' }] }), 5],
    ['what was said aloud', answer({ content: null, audio: { data: 'AAAA', transcript: '1234' } }), 1],
  ])('counts %s', (_what, value, tokens) => {
    expect(countOf(value)).toBe(tokens)
  })

  it.each([
    ['no choices', {}],
    ['choices of another kind', { choices: [3, null, { message: 'no' }] }],
    ['a list', []],
  ])('is nothing where there are %s', (_what, value) => {
    expect(countOf(value)).toBe(0)
  })

  it.each([
    ['is broken', '{"choices":['],
    ['nobody can write again', `{"choices":[{"message":{"tool_calls":${'['.repeat(400_000)}${']'.repeat(400_000)}}}]}`],
  ])('is nothing of what %s', (_what, text) => {
    expect(new AnswerEstimate(Buffer.from(text)).count).toBe(0)
  })
})
