import { describe, expect, it } from '@jest/globals'
import { JsonBody } from '../../core/json-body.js'
import { translateForParrot } from './parrot-translator.js'

const request = (fields: object): string => {
  const chat = { model: 'parrot-1', messages: [{ role: 'user', content: 'Hello' }], ...fields }
  const body = JsonBody.parse(Buffer.from(JSON.stringify(chat))).as(chat)
  return translateForParrot(body, 'grey').request.bytes.toString()
}

describe('The parrot', () => {
  it('hears the last text', () => {
    expect(request({ stream: true })).toBe('{"voice":"grey","hear":"Hello","live":true}')
  })

  it.each([
    ['tools', { tools: [] }],
    ['messages', { messages: [{ role: 'user', content: [] }] }],
  ])('refuses what it cannot hear, by its name: %s', (param, fields) => {
    expect(() => request(fields)).toThrow(expect.objectContaining({ details: { code: 'unsupported_value', param } }))
  })
})
