import { expect, it } from '@jest/globals'
import { isClosedSchema, isSurelyClosedSchema } from './strict-schema.js'

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

it.each<[string, unknown]>([
  ['of an object without properties', { type: 'object', additionalProperties: false }],
  ['with closed objects at every depth', within(closed({ b: TEXT, c: within(closed({})) }))],
  ['with properties called like keywords', closed({ default: TEXT, not: TEXT, minLength: TEXT })],
  ['that refers to its definitions', closed({ a: { $ref: '#/$defs/b' } }, { $defs: { b: closed({}) } })],
  ['with properties that may be null', closed({ a: { type: ['string', 'null'] }, b: { enum: ['x'] } })],
])('Chat upstreams take as strict a schema %s', (_which, schema) => {
  expect([isClosedSchema(schema), isSurelyClosedSchema(schema)]).toEqual([true, true])
})

it.each<[string, unknown]>([
  ['that is none', undefined],
  ['that says nothing', {}],
  ['that names no type', { properties: {}, additionalProperties: false }],
  ['of a text', TEXT],
  ['with a choice at its top', closed({}, { anyOf: [closed({}), closed({ a: TEXT })] })],
  ['open at its top', OPEN],
  ['open within', within(OPEN)],
  ['open where null is taken as well', within({ ...OPEN, type: ['object', 'null'] })],
  ['open in a definition', closed({}, { $defs: { b: OPEN } })],
  ['with an optional property within', within(closed({ b: TEXT }, { required: [] }))],
  ['with a keyword that they lack', closed({ a: { ...TEXT, not: { const: '' } } })],
])('Chat upstreams do not take as strict a schema %s', (_which, schema) => {
  expect([isClosedSchema(schema), isSurelyClosedSchema(schema)]).toEqual([false, false])
})

it.each<[string, unknown]>([
  ['with a property of any kind', closed({ a: { description: 'Anything' } })],
  ['with a keyword that some lack', closed({ a: { ...TEXT, default: '' } })],
  ['with a keyword that some lack at its top', closed({}, { minProperties: 0 })],
])('Only a caller can ask chat upstreams to take as strict a schema %s', (_which, schema) => {
  expect([isClosedSchema(schema), isSurelyClosedSchema(schema)]).toEqual([true, false])
})
