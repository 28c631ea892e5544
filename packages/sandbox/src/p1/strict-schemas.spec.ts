import { describe, expect, it } from '@jest/globals'
import { strictFault } from './strict-schemas.js'

const text = { type: 'string' }
const closed = (properties: object, more: object = {}): object => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
  ...more,
})

describe('What a strict schema lacks', () => {
  it.each<[string, object, RegExp]>([
    [
      'an object at its root',
      { type: 'array', items: text },
      /^schema must be a JSON Schema of 'type: "object"', got 'type: "array"'\.$/,
    ],
    [
      'one object at its root',
      { anyOf: [closed({})], ...closed({}) },
      /^schema must not have 'anyOf' at the top level\.$/,
    ],
    [
      'a closed root',
      closed({}, { additionalProperties: true }),
      /^In context=\(\), 'additionalProperties' is required/,
    ],
    [
      'a list of what is required',
      closed({ a: text }, { required: undefined }),
      /^In context=\(\), 'required' .* Missing 'a'\.$/,
    ],
    [
      'a required property',
      closed({ a: text, b: text }, { required: ['a'] }),
      /^In context=\(\), 'required' .* Missing 'b'\.$/,
    ],
    [
      'a closed property',
      closed({ a: { type: 'object' } }),
      /^In context=\('properties', 'a'\), 'additionalProperties'/,
    ],
    [
      'a closed property that may be null',
      closed({ a: { type: ['object', 'null'] } }),
      /^In context=\('properties', 'a'\), 'add/,
    ],
    [
      'closed items',
      closed({ a: { type: 'array', items: { type: 'object' } } }),
      /^In context=\('properties', 'a', 'items'\)/,
    ],
    [
      'a closed choice',
      closed({ a: { anyOf: [text, { type: 'object' }] } }),
      /^In context=\('properties', 'a', 'anyOf', '1'\)/,
    ],
    ['a closed definition', closed({}, { $defs: { a: { type: 'object' } } }), /^In context=\('\$defs', 'a'\)/],
    [
      'permitted combinations',
      closed({ a: { allOf: [text] } }),
      /^In context=\('properties', 'a'\), 'allOf' is not permitted\.$/,
    ],
    [
      'the required property itself',
      closed({ a: text }, { required: ['a', 'b'] }),
      /^In context=\(\), 'required' is required .* Extra required key 'b' supplied\.$/,
    ],
    [
      'a format that there is',
      closed({ url: { ...text, format: 'uri' } }),
      /^In context=\('properties', 'url'\), 'uri' is not a valid format\.$/,
    ],
    [
      'a reference alone',
      closed({ a: { $ref: '#/$defs/b', description: 'B', title: 'b' } }, { $defs: { b: closed({}) } }),
      /^In context=\('properties', 'a'\), \$ref cannot have keywords \{'description', 'title'\}\.$/,
    ],
  ])('%s, is said in the words of the upstream', (_what, schema, words) => {
    expect(strictFault(schema)).toMatch(words)
  })

  it('is nothing where all properties of all objects are required and no others allowed, whatever their names', () => {
    const nested = closed({
      not: { ...text, default: 'x' },
      allOf: { type: 'array', items: closed({ a: { anyOf: [text, { type: 'null' }] } }) },
      format: { ...text, format: 'date-time' },
      $ref: { $ref: '#/$defs/c' },
    })
    expect(strictFault(closed({ b: nested }, { $defs: { c: closed({}) } }))).toBeUndefined()
  })
})
