import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import type { Usage } from '../../core/request-context.js'
import { ChatUsageFilter } from './p1-chat-usage.js'

function filtered(callerAsked: boolean, ...regions: string[]): { text: string; found: Usage[] } {
  const found: Usage[] = []
  const filter = new ChatUsageFilter(callerAsked, (usage) => found.push(usage))
  return { text: regions.map((region) => filter.filter(Buffer.from(region)).toString()).join(''), found }
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
