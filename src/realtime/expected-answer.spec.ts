import { describe, expect, it } from '@jest/globals'
import { ExpectedAnswer } from './response-estimate.js'

const frame = (event: object): Buffer => Buffer.from(JSON.stringify(event))
const create = (response?: object): Buffer => frame({ type: 'response.create', response })
const tokensOf = (event: Buffer): number => Math.ceil(event.length / 4)

const item = (...content: readonly object[]): Buffer =>
  frame({ type: 'conversation.item.create', item: { type: 'message', role: 'user', content } })

describe('An answer is expected to read', () => {
  it('four bytes to a token of whatever was sent since the last one began, and of the event that asks for it', () => {
    const expected = new ExpectedAnswer()
    const [first, second] = [item({ type: 'input_text', text: 'x'.repeat(4000) }), create()]
    expected.send(first)
    expect(expected.expected(0, second)).toMatchObject({
      tokens: Math.ceil((first.length + second.length) / 4),
      unboundedAnswers: 1,
    })
    expect(expected.expected(0)).toMatchObject({ tokens: tokensOf(first) })
    expected.begin()
    expect(expected.expected(0)).toMatchObject({ tokens: 0 })
  })

  it('as much as the last one has read and said', () => {
    const expected = new ExpectedAnswer()
    expected.end({ total_tokens: 130, input_tokens: 100, output_tokens: 30 })
    expect(expected.expected(0)).toMatchObject({ tokens: 130 })
    expected.end({ total_tokens: 240, input_tokens: 200, output_tokens: 40 })
    expect(expected.expected(0)).toMatchObject({ tokens: 240 })
  })

  it('no less after an answer that read nothing', () => {
    const expected = new ExpectedAnswer()
    expected.end({ total_tokens: 130, input_tokens: 100, output_tokens: 30 })
    expected.end({ total_tokens: 0, input_tokens: 0, output_tokens: 0 })
    expect(expected.expected(0)).toMatchObject({ tokens: 130 })
  })

  it('no less after an answer out of band, which is no part of the conversation', () => {
    const expected = new ExpectedAnswer()
    expected.end({ total_tokens: 130, input_tokens: 100, output_tokens: 30 })
    expected.end({ total_tokens: 12, input_tokens: 10, output_tokens: 2 }, true)
    expect(expected.expected(0)).toMatchObject({ tokens: 130 })
    expected.end({ total_tokens: 60, input_tokens: 50, output_tokens: 10 })
    expect(expected.expected(0)).toMatchObject({ tokens: 60 })
  })

  it('as much as the longest of an upstream that names no conversation of any answer', () => {
    const expected = new ExpectedAnswer()
    expected.end({ total_tokens: 130, input_tokens: 100, output_tokens: 30 }, true)
    expected.end({ total_tokens: 240, input_tokens: 200, output_tokens: 40 }, true)
    expect(expected.expected(0)).toMatchObject({ tokens: 240 })
  })

  it('ten tokens for each second that it hears, and those seconds', () => {
    const expected = new ExpectedAnswer()
    expect(expected.expected(2.54)).toMatchObject({ tokens: 26, audioSeconds: 12.6 })
  })

  it.each<[string, Record<string, unknown>, number]>([
    ['PCM', {}, 48_000],
    ['G.711', { input_audio_format: 'g711_ulaw' }, 8000],
  ])('sound in an item by its length, in %s, and not as text', (_what, session, bytesPerSecond) => {
    const expected = new ExpectedAnswer()
    expected.configure(session)
    const audio = Buffer.alloc(3 * bytesPerSecond).toString('base64')
    const event = item({ type: 'input_audio', audio })
    expected.send(event)
    expect(expected.expected(0)).toMatchObject({
      tokens: Math.ceil((event.length - audio.length) / 4 + 30),
      audioSeconds: 13,
    })
  })

  it('a thousand tokens for a picture; a short one, and text that only looks like one, by their bytes', () => {
    const expected = new ExpectedAnswer()
    const long = `data:image/png;base64,${'A'.repeat(5000)}`
    const event = item({ type: 'input_image', image_url: long })
    expected.send(event)
    expect(expected.expected(0)).toMatchObject({ tokens: Math.ceil((event.length - long.length) / 4 + 1000) })
    expected.begin()
    // As some languages write JSON.
    const escaped = Buffer.from(event.toString().replaceAll('/', '\\/'))
    expected.send(escaped)
    expect(expected.expected(0)).toMatchObject({ tokens: Math.ceil((event.length - long.length) / 4 + 1000) })
    expected.begin()
    const text = item({ type: 'input_text', text: `"audio":"${'A'.repeat(5000)}"` })
    const short = item({ type: 'input_image', image_url: 'A'.repeat(1023) }, { text: 'x'.repeat(100) })
    expected.send(text)
    expected.send(short)
    expect(expected.expected(0)).toMatchObject({ tokens: Math.ceil((text.length + short.length) / 4) })
  })
})

describe('An answer is expected to say', () => {
  it.each<[string, Record<string, unknown>]>([
    ['in GA', { max_output_tokens: 100 }],
    ['in beta', { max_response_output_tokens: 100 }],
  ])('as much as the session allows %s, and five seconds of that', (_where, session) => {
    const expected = new ExpectedAnswer()
    expected.configure(session)
    expect(expected.expected(0)).toEqual({ tokens: 100, unboundedAnswers: 0, audioSeconds: 5 })
    expected.configure({ max_output_tokens: 'inf' })
    expect(expected.expected(0)).toEqual({ tokens: 0, unboundedAnswers: 1, audioSeconds: 10 })
  })

  it('as much as it is asked for, whatever the session says', () => {
    const expected = new ExpectedAnswer()
    expected.configure({ max_output_tokens: 100, output_modalities: ['audio'] })
    const few = create({ max_output_tokens: 40 })
    expect(expected.expected(0, few)).toEqual({ tokens: tokensOf(few) + 40, unboundedAnswers: 0, audioSeconds: 2 })
    const any = create({ max_output_tokens: 'inf' })
    expect(expected.expected(0, any)).toEqual({ tokens: tokensOf(any), unboundedAnswers: 1, audioSeconds: 10 })
    const none = create({ max_output_tokens: null })
    expect(expected.expected(0, none)).toMatchObject({ tokens: tokensOf(none) + 100, unboundedAnswers: 0 })
  })

  it('next to no audio where it is in text: what is used up must show all the same', () => {
    const expected = new ExpectedAnswer()
    expect(expected.expected(0, create({ modalities: ['text'] }))).toMatchObject({ audioSeconds: 0.1 })
    expected.configure({ output_modalities: ['text'] })
    expect(expected.expected(0)).toMatchObject({ audioSeconds: 0.1 })
    expect(expected.expected(0, create({ modalities: ['audio', 'text'] }))).toMatchObject({ audioSeconds: 10 })
    expected.configure({ voice: 'alloy' })
    expect(expected.expected(0)).toMatchObject({ audioSeconds: 0.1 })
  })

  it('no less because of fields of other types', () => {
    const expected = new ExpectedAnswer()
    expected.configure({ max_output_tokens: 'many', modalities: 'audio' })
    for (const response of [3, null, [], { max_output_tokens: {} }, { max_output_tokens: -5 }])
      expect(expected.expected(0, create(response as object))).toMatchObject({ unboundedAnswers: 1, audioSeconds: 10 })
    expect(expected.expected(0, Buffer.from('no JSON'))).toMatchObject({ tokens: 2, unboundedAnswers: 1 })
  })
})
