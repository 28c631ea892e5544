import { describe, expect, it } from '@jest/globals'
import { JsonText, jsonTextOf, JsonTexts } from './json-text.js'

const SOURCE = '{ "b": {"1.0": [1.0, 1e400, 12345678901234567890], "a\\u0062": "x\\"y"}, "2": 1, "1": "}" }'
const texts = new JsonTexts(Buffer.from(SOURCE))

describe('The text of a value in JSON', () => {
  it.each([
    [['b', '1.0'], '[1.0, 1e400, 12345678901234567890]'],
    [['b', '1.0', 1], '1e400'],
    [['b', 'ab'], '"x\\"y"'],
    [['1'], '"}"'],
  ])('is found by its path: %j', (path, expected) => {
    expect(texts.at(...path)?.text.text).toBe(expected)
  })

  it.each([[['c']], [['b', 0]], [['b', '1.0', 3]], [['2', 'a']], [['b', '1.0', 'a']]])(
    'is undefined where there is none: %j',
    (path) => {
      expect(texts.at(...path)).toBeUndefined()
    },
  )

  it('fits into one line, whatever lines it came in', () => {
    const lines = new JsonTexts(Buffer.from('{"a":{\r\n  "b": [\n1.0,\n\n"x\\n"]}}'))
    expect(lines.at('a')?.text.text).toBe('{   "b": [ 1.0, "x\\n"]}')
  })

  it('is found among more members and elements than an event can have', () => {
    const members = Array.from({ length: 3000 }, (_, index) => `"${index}":[${'1,'.repeat(2000)}${index}]`)
    const many = new JsonTexts(Buffer.from(`{${members.join()}}`))
    expect(many.at('2999', 2000)?.text.text).toBe('2999')
  })
})

describe('JSON with values as they were spelled', () => {
  it('holds them wherever they stand', () => {
    const value = { list: [new JsonText('1.0'), { deep: new JsonText('{"b":1,"1":2e0}') }], text: 'plain' }
    expect(jsonTextOf(value)).toBe('{"list":[1.0,{"deep":{"b":1,"1":2e0}}],"text":"plain"}')
  })

  it('may itself be one of them', () => {
    expect(jsonTextOf(new JsonText('1e400'))).toBe('1e400')
  })

  it('may be many megabytes, with any number of escapes', () => {
    const spelled = `{"text":"${'a\\"'.repeat(3_000_000)}"}`
    expect(jsonTextOf({ arguments: new JsonText(spelled), others: [new JsonText('1.0')] })).toBe(
      `{"arguments":${spelled},"others":[1.0]}`,
    )
  })

  it('keeps quotes, escapes and characters beyond ASCII of what is spelled', () => {
    const spelled = '{"a":"\\"\\\\\\u00e9 é \u2028"}'
    expect(jsonTextOf({ value: new JsonText(spelled) })).toBe(`{"value":${spelled}}`)
  })
})
