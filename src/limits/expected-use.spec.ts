import { describe, expect, it } from '@jest/globals'
import { expectedOfChat, expectedOfRecording, expectedOfSpeech } from './estimate-usage.js'

const chat = (fields: object): number => {
  const body = { model: 'm', messages: [{ role: 'user', content: 'Hello' }], ...fields }
  return expectedOfChat(Buffer.byteLength(JSON.stringify(body)), body).tokens ?? NaN
}

const promptTokens = chat({})

describe('What a chat request is expected to use', () => {
  it('is a token for four bytes of its body, when it names no maximum', () => {
    expect(promptTokens).toBe(Math.ceil('{"model":"m","messages":[{"role":"user","content":"Hello"}]}'.length / 4))
  })

  it.each([
    [{ max_tokens: 1000 }, 1000],
    [{ max_completion_tokens: 500 }, 500],
    [{ max_tokens: 1000, max_completion_tokens: 500 }, 500],
    [{ max_tokens: 1000, n: 3 }, 3000],
    [{ max_tokens: 1e15 }, 1_000_000],
    [{ max_tokens: 10, n: 1e15 }, 1280],
    [{ max_tokens: null, n: null }, 0],
    [{ max_tokens: 'many', n: -4 }, 0],
    [{ max_tokens: -5 }, 0],
  ])('adds what it allows each choice: %p', (fields, output) => {
    const text = JSON.stringify(fields).length / 4
    expect(chat(fields) - output - promptTokens).toBeGreaterThanOrEqual(0)
    expect(chat(fields) - output - promptTokens).toBeLessThanOrEqual(text + 1)
  })

  it.each([
    [{}, 1],
    [{ n: 3 }, 3],
    [{ max_tokens: 5 }, 0],
    [{ max_completion_tokens: 5, n: 3 }, 0],
    [{ max_tokens: null, n: null }, 1],
    [{ max_tokens: 0, n: 2 }, 2],
    [{ n: 1e15 }, 128],
  ])('has so many answers of which it does not say how long they may be: %p', (fields, answers) => {
    const body = { messages: [{ role: 'user', content: 'Hello' }], ...fields }
    expect(expectedOfChat(100, body).unboundedAnswers).toBe(answers)
  })

  const LONG = 'four '.repeat(40_000)
  const LETTERS = 'a'.repeat(200_000)
  it.each<[string, object]>([
    ['a text', { type: 'text', text: LONG }],
    ['a text that looks like a data URL', { type: 'text', text: `data:image/png;base64,${LETTERS}` }],
    ['a text that looks like Base64', { type: 'text', text: LETTERS }],
    ['a URL whose data is no Base64', { type: 'image_url', image_url: { url: `data:text/plain,${LETTERS}` } }],
    ['a URL that only begins like one', { type: 'image_url', image_url: { url: `data:,${LETTERS}` } }],
    ['a document of plain text', { type: 'document', source: { type: 'text', data: LETTERS } }],
    ['data that is no Base64', { type: 'document', source: { type: 'base64', data: LONG } }],
  ])('counts %s by its length', (_name, part) => {
    expect(chat({ messages: [{ role: 'user', content: [part] }] })).toBeGreaterThan(49_000)
    expect(chat({ system: [part] })).toBeGreaterThan(49_000)
  })

  it.each<[string, object]>([
    ['a picture', { type: 'image_url', image_url: { url: `data:image/png;base64,${LETTERS}` } }],
    ['one with a parameter', { type: 'image_url', image_url: { url: `data:image/svg+xml;q=1;base64,${LETTERS}` } }],
    ['a sound', { type: 'input_audio', input_audio: { data: LETTERS, format: 'wav' } }],
    ['a file', { type: 'file', file: { file_data: `data:application/pdf;base64,${LETTERS}` } }],
  ])('takes %s for a thousand tokens', (_name, part) => {
    const expected = chat({ messages: [{ role: 'user', content: [part] }] })
    expect(expected).toBeGreaterThan(1000)
    expect(expected).toBeLessThan(1200)
  })

  it('takes a picture for a thousand tokens, in either family, and long text for text', () => {
    const base64 = Buffer.alloc(300_000, 7).toString('base64')
    const picture = { type: 'image_url', image_url: { url: `data:image/png;base64,${base64}` } }
    const source = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: base64 } }
    for (const part of [picture, source]) {
      const expected = chat({ messages: [{ role: 'user', content: [part, part] }] })
      expect(expected).toBeGreaterThan(2000)
      expect(expected).toBeLessThan(2200)
    }
    const words = 'four '.repeat(40_000)
    expect(chat({ messages: [{ role: 'user', content: words }] })).toBeGreaterThan(49_000)
  })
})

describe('What speech is expected to take', () => {
  it.each([
    ['a'.repeat(150), undefined, 10],
    ['a'.repeat(150), 2, 5],
    ['a'.repeat(150), null, 10],
    ['你'.repeat(50), undefined, 10],
    ['你'.repeat(25) + 'a'.repeat(75), undefined, 10],
  ])('%s at speed %p', (input, speed, seconds) => {
    expect(expectedOfSpeech(input, speed).audioSeconds).toBeCloseTo(seconds)
  })
})

describe('What a recording is expected to take', () => {
  it('is its length, and a thousand tokens a minute where the model counts tokens', () => {
    expect(expectedOfRecording(1, 90, false)).toEqual({ audioSeconds: 90 })
    expect(expectedOfRecording(1, 90, true)).toEqual({ audioSeconds: 90, tokens: 1500 })
  })

  it('is guessed from its size when the file does not tell', () => {
    expect(expectedOfRecording(160_000, undefined, false)).toEqual({ audioSeconds: 10, isGuess: true })
    expect(expectedOfRecording(960_000, undefined, true)).toEqual({ audioSeconds: 60, tokens: 1000, isGuess: true })
  })
})
