import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import type { Usage } from '../core/request-context.js'
import { StreamTail } from '../core/sse.js'
import { ChatUsageFilter } from './chat-usage.js'
import { ChatUsageEstimator, estimatePromptTokens, ResponseEstimate } from './openai-chat.js'

const countOf = (value: unknown): number => new ResponseEstimate(Buffer.from(JSON.stringify(value))).count
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
    [
      'cannot be written again',
      `{"choices":[{"message":{"tool_calls":${'['.repeat(400_000)}${']'.repeat(400_000)}}}]}`,
    ],
  ])('is nothing of what %s', (_what, text) => {
    expect(new ResponseEstimate(Buffer.from(text)).count).toBe(0)
  })
})

const REQUEST = { messages: [{ role: 'user', content: '12345678' }] }

describe('What a chat completion has used', () => {
  it('is, of a stream that has said it, counted beside that by its pieces alone', () => {
    const pieces = { count: 0 }
    const meter = new ChatUsageEstimator(REQUEST, pieces)
    pieces.count = 7
    expect(meter.countedUnits()).toEqual({ completion_tokens: 7 })
  })

  it('is looked for in its request when the upstream has not said it', () => {
    const units = { prompt_tokens: 2 + 4 + 3, completion_tokens: 7, total_tokens: 2 + 4 + 3 + 7 }
    expect(new ChatUsageEstimator(REQUEST, { count: 7 }).estimate()).toEqual({ units, estimated: true })
  })

  it('is not counted of an answer that is too large to be held', () => {
    const meter = new ChatUsageEstimator(REQUEST)
    expect(meter.countedUnits()).toBeUndefined()
    expect(meter.estimate()).toEqual({ units: { prompt_tokens: 2 + 4 + 3 }, estimated: true })
  })
})

function filtered(callerAsked: boolean, ...regions: string[]): { text: string; found: Usage[] } {
  const found: Usage[] = []
  const filter = new ChatUsageFilter(callerAsked, (usage) => found.push(usage))
  const passed = regions.map((region) => filter.filter(Buffer.from(region), new StreamTail()).toString())
  return { text: passed.join(''), found }
}

const frame = (json: string): string => `data: ${json}\n\n`
const FIGURES = '"usage":{"prompt_tokens":11,"prompt_tokens_details":{"cached_tokens":0}}'
const EXTRA = frame(`{"id":"c","choices":[],${FIGURES},"obfuscation":""}`)
const DONE = frame('[DONE]')

describe('The usage of a chat stream', () => {
  it.each([
    ['last', '{"choices":[],"usage":null}', '{"choices":[]}'],
    ['in the middle', '{"choices":[],"usage":null,"obfuscation":"x"}', '{"choices":[],"obfuscation":"x"}'],
    ['first', '{"usage":null,"choices":[]}', '{"choices":[]}'],
    ['alone', '{"usage":null}', '{}'],
    ['last, with spaces', '{"choices": [] , "usage" : null }', '{"choices": []  }'],
    ['first, with spaces', '{ "usage" :\tnull , "choices": []}', '{  "choices": []}'],
    ['in a filler without choices', '{"id":"c","usage":null,"obfuscation":"y"}', '{"id":"c","obfuscation":"y"}'],
  ])('leaves no null behind for a caller who did not ask for it (%s)', (_place, json, expected) => {
    expect(filtered(false, frame(json) + frame(json)).text).toBe(frame(expected) + frame(expected))
    expect(JSON.parse(expected)).toBeDefined()
  })

  it('is found for the log, and its chunk removed for a caller who did not ask', () => {
    const chunk = frame('{"choices":[{"delta":{"content":"a"}}],"usage":null}')
    const { text, found } = filtered(false, chunk + EXTRA + DONE)
    expect(text).toBe(frame('{"choices":[{"delta":{"content":"a"}}]}') + DONE)
    expect(found).toEqual([
      { units: { prompt_tokens: 11, prompt_tokens_details: { cached_tokens: 0 } }, estimated: false },
    ])
  })

  it('reaches a caller who asked for it, byte for byte', () => {
    const stream = frame('{"choices":[] , "usage" : null}') + EXTRA + DONE
    const { text, found } = filtered(true, stream)
    expect(text).toBe(stream)
    expect(found).toHaveLength(1)
  })

  it('keeps a chunk that has choices beside the figures', () => {
    const last = frame(`{"choices":[{"delta":{},"finish_reason":"stop"}],${FIGURES}}`)
    const { text, found } = filtered(false, last)
    expect(text).toBe(last)
    expect(found).toHaveLength(1)
  })

  it('keeps the chunk that follows the figures', () => {
    const expiry = frame('{"choices":[{"index":0,"delta":{"audio":{"expires_at":1780697157}}}]}')
    expect(filtered(false, EXTRA + expiry, DONE).text).toBe(expiry + DONE)
  })

  it('is never found in the text of a model, whatever it says', () => {
    const quoteful = fc.array(
      fc.constantFrom('"usage"', '"usage":null', ':', ',', '{', '}', '\\', 'null', 'usage', ' '),
    )
    fc.assert(
      fc.property(quoteful, (parts) => {
        const content = parts.join('')
        const chunk = frame(JSON.stringify({ choices: [{ delta: { content, refusal: null } }] }))
        expect(filtered(false, chunk)).toEqual({ text: chunk, found: [] })
      }),
    )
  })
})

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
