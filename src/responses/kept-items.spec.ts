import { describe, expect, it } from '@jest/globals'
import { isId } from '../dialects/kept-answers.js'
import { elementTexts, inputTexts, ItemIds, keptItem, listedText, nativeText } from './kept-items.js'

const made = (item: object) => keptItem(JSON.stringify(item), true, new ItemIds())
const given = (item: object) => keptItem(JSON.stringify(item), false, new ItemIds())

describe('The items of a request', () => {
  it.each([
    ['nothing', undefined, []],
    ['null', 'null', []],
    ['an empty list', '[ ]', []],
    ['a text', '"caf\\u00e9"', ['{"type":"message","role":"user","content":"caf\\u00e9"}']],
    ['items as they are spelled', '[ {"a":1.0} ,\n{"b":[1e400]}]', ['{"a":1.0}', '{"b":[1e400]}']],
  ])('are texts: %s', (_what, input, texts) => {
    expect(inputTexts(input)).toEqual(texts)
  })

  it('may hold any characters', () => {
    expect(elementTexts('[{"t":"ü ]},{\\"[ 漢"},[1]]')).toEqual(['{"t":"ü ]},{\\"[ 漢"}', '[1]'])
  })
})

describe('The id of an item', () => {
  it.each([
    [{ type: 'message', id: 'msg_1' }, /^msg_1$/],
    [{ role: 'user', content: 'Hello' }, /^msg_[0-9a-f]{48}0001$/],
    [{ type: 'function_call_output', call_id: 'call_1', output: '' }, /^fc_[0-9a-f]{48}0001$/],
    [{ type: 'custom_tool_call', id: null }, /^ctc_[0-9a-f]{48}0001$/],
    [{ type: 'reasoning' }, /^rs_[0-9a-f]{48}0001$/],
    [{ type: 'something_new' }, /^item_[0-9a-f]{48}0001$/],
    // Nothing that could be asked for.
    [{ role: 'user', id: 'not an id' }, /^msg_/],
    [{ role: 'user', id: 'x'.repeat(513) }, /^msg_[0-9a-f]{48}0001$/],
  ])('is its own, or one is made: %j', (item, id) => {
    expect(given(item).id).toMatch(id)
    expect(isId(given(item).id)).toBe(true)
  })
})

describe('An item that is sent to an upstream that keeps responses itself', () => {
  it('is the caller’s as it was spelled', () => {
    const text = '{ "id":"msg_1", "role":"user", "content":"Hello", "n":1.0 }'
    expect(nativeText({ id: 'msg_1', text, isMade: false })).toBe(text)
  })

  it('has no id where a translation has made it', () => {
    const text = '{"id":"fc_1","type":"function_call","arguments":"{\\"n\\":1.0}"}'
    expect(nativeText({ id: 'fc_1', text, isMade: true })).toBe('{"type":"function_call","arguments":"{\\"n\\":1.0}"}')
  })

  it('is left out where nobody else could read it', () => {
    const reasoning = { id: 'rs_1', type: 'reasoning', summary: [], encrypted_content: 'sealed' }
    expect(nativeText(made(reasoning))).toBeUndefined()
    expect(nativeText(given(reasoning))).toBe(JSON.stringify(reasoning))
  })
})

describe('An item in a list', () => {
  it.each([
    [
      { role: 'user', content: 'Hello' },
      { type: 'message', status: 'completed', role: 'user', content: [{ type: 'input_text', text: 'Hello' }] },
    ],
    [
      { type: 'message', role: 'assistant', content: 'Hello', status: 'incomplete' },
      {
        type: 'message',
        status: 'incomplete',
        role: 'assistant',
        content: [{ type: 'output_text', text: 'Hello', annotations: [] }],
      },
    ],
    [
      { type: 'function_call_output', call_id: 'call_1', output: '1.0' },
      { type: 'function_call_output', status: 'completed', call_id: 'call_1', output: '1.0' },
    ],
    [
      { type: 'reasoning', summary: [] },
      { type: 'reasoning', summary: [] },
    ],
  ])('has an id and a status, and its text in parts: %j', (item, listed) => {
    const kept = given(item)
    expect(JSON.parse(listedText(kept))).toEqual({ ...listed, id: kept.id })
  })

  it('keeps the spelling of what is not changed', () => {
    const text = '{"id":null,"role":"user","content":[{"type":"input_text","text":"a","n":1.0}]}'
    expect(listedText({ id: 'msg_1', text, isMade: false })).toBe(
      '{"id":"msg_1","role":"user","content":[{"type":"input_text","text":"a","n":1.0}],"type":"message","status":"completed"}',
    )
  })
})
