import { describe, expect, it } from '@jest/globals'
import { usageOf } from './response.js'

const USAGE = {
  total_tokens: 253,
  input_tokens: 132,
  output_tokens: 121,
  input_token_details: {
    cached_tokens: 64,
    text_tokens: 119,
    audio_tokens: 13,
    cached_tokens_details: { text_tokens: 64, audio_tokens: 0 },
  },
  output_token_details: { text_tokens: 30, audio_tokens: 91 },
}

const of = (event: object): unknown => usageOf(Buffer.from(JSON.stringify(event)))

describe('The usage of a server event', () => {
  it.each(['completed', 'cancelled', 'failed', 'incomplete'])('is the one of a response that is %s', (status) => {
    const response = { usage: { wrong: 1 }, output: [{ usage: { wrong: 2 } }] }
    expect(of({ type: 'response.done', usage: { wrong: 3 }, response: { ...response, status, usage: USAGE } })).toEqual(
      USAGE,
    )
  })

  it('is the one of an input transcription, in tokens or in seconds', () => {
    const type = 'conversation.item.input_audio_transcription.completed'
    expect(of({ type, transcript: 'a', usage: { type: 'duration', seconds: 2.5 } })).toEqual({ seconds: 2.5 })
    expect(of({ type, usage: { type: 'tokens', total_tokens: 3, input_token_details: { audio_tokens: 2 } } })).toEqual({
      total_tokens: 3,
      input_token_details: { audio_tokens: 2 },
    })
  })

  it.each([
    { type: 'response.done', response: { usage: null } },
    { type: 'response.done', response: {} },
    { type: 'response.done', response: null },
    { type: 'response.done', usage: USAGE },
    { type: 'response.created', response: { usage: USAGE } },
    { type: 'conversation.item.input_audio_transcription.completed' },
    { type: 'conversation.item.input_audio_transcription.delta', usage: { seconds: 2 } },
    { usage: USAGE },
  ])('is nothing in %j', (event) => {
    expect(of(event)).toBeUndefined()
  })

  it.each([
    '',
    'null',
    '{',
    '{"type":"response.done","response":{"usage":{]}}',
    '{"type":"response.done","response":{"usage":{"a":1]}}',
  ])('is nothing in %j, and nothing is thrown', (text) => {
    expect(usageOf(Buffer.from(text))).toBeUndefined()
  })
})
