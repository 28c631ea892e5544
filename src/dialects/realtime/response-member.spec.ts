import { describe, expect, it } from '@jest/globals'
import { answerIdOf, asksOutOfBand, isOutOfBand } from './response-member.js'

const frameOf = (event: unknown): Buffer => Buffer.from(JSON.stringify(event))

describe('An answer', () => {
  it.each<[string, object | null]>([
    ['it names a conversation', { conversation_id: 'conv_1', usage: null }],
    ['it does not speak of conversations', { usage: null, metadata: { conversation_id: null } }],
    ['there is nothing of it', null],
  ])('is of the conversation where %s', (_why, response) => {
    expect(isOutOfBand(frameOf({ type: 'response.done', response }))).toBe(false)
  })

  it('is out of band where its conversation is null', () => {
    const response = { id: 'resp_1', conversation_id: null, usage: null }
    expect(isOutOfBand(frameOf({ type: 'response.done', response }))).toBe(true)
  })

  it('is of the conversation where nobody can read it', () => {
    expect(isOutOfBand(Buffer.from('{"type":"response.done","response":{]}'))).toBe(false)
  })
})

describe('A client asks for an answer', () => {
  it('out of band where it wants no conversation', () => {
    expect(asksOutOfBand(frameOf({ type: 'response.create', response: { conversation: 'none' } }))).toBe(true)
  })

  it.each([
    { type: 'response.create' },
    { type: 'response.create', response: null },
    { type: 'response.create', response: { conversation: 'auto' } },
    { type: 'response.create', response: { conversation: null }, conversation: 'none' },
  ])('of the conversation by %j', (event) => {
    expect(asksOutOfBand(frameOf(event))).toBe(false)
  })
})

describe('The name of an answer', () => {
  it('is the id of its response', () => {
    expect(answerIdOf(frameOf({ type: 'response.created', event_id: 'e', response: { id: 'resp_1' } }))).toBe('resp_1')
  })

  it.each([{ id: 'x' }, { response: {} }, { response: { id: 1 } }, { response: 'resp_1' }])(
    'is nothing in %j',
    (event) => {
      expect(answerIdOf(frameOf(event))).toBeUndefined()
    },
  )
})
