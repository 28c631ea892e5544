import { expect, it } from '@jest/globals'
import { isClosedSchema } from './strict-schema.js'

const TEXT = { type: 'string' }
const OPEN = { type: 'object', properties: {} }
const closed = (properties: object, more: object = {}): object => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
  ...more,
})
const within = (schema: object): object => closed({ a: { type: 'array', items: { anyOf: [TEXT, schema] } } })

it.each<[string, unknown, boolean]>([
  ['of an object without properties', { type: 'object', additionalProperties: false }, true],
  ['that names no type', { properties: {}, additionalProperties: false }, true],
  ['with closed objects at every depth', within(closed({ b: TEXT, c: within(closed({})) })), true],
  ['with properties called like keywords', closed({ default: TEXT, not: TEXT, minLength: TEXT }), true],
  ['that refers to its definitions', closed({ a: { $ref: '#/$defs/b' } }, { $defs: { b: closed({}) } }), true],
  ['with properties that may be null', closed({ a: { type: ['string', 'null'] }, b: { enum: ['x'] } }), true],
  ['that is none', undefined, false],
  ['that says nothing', {}, false],
  ['of a text', TEXT, false],
  ['with a choice at its top', closed({}, { anyOf: [closed({}), closed({ a: TEXT })] }), false],
  ['open at its top', OPEN, false],
  ['open within', within(OPEN), false],
  ['open where null is taken as well', within({ ...OPEN, type: ['object', 'null'] }), false],
  ['open in a definition', closed({}, { $defs: { b: OPEN } }), false],
  ['with an optional property within', within(closed({ b: TEXT }, { required: [] })), false],
  ['with a property of any kind', closed({ a: { description: 'Anything' } }), false],
  ['with a keyword that upstreams refuse', closed({ a: { ...TEXT, default: '' } }), false],
  ['with a keyword that upstreams refuse at its top', closed({}, { minProperties: 0 }), false],
])('chat upstreams take as strict or not a schema %s', (_which, schema, isClosed) => {
  expect(isClosedSchema(schema)).toBe(isClosed)
})
