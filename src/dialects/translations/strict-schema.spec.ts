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

const FORMATS = ['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uuid'] as const

it.each<[string, unknown]>([
  ['of an object without properties', { type: 'object', additionalProperties: false }],
  ['with closed objects at every depth', within(closed({ b: TEXT, c: within(closed({})) }))],
  [
    'with properties called like keywords',
    closed({ default: TEXT, not: TEXT, contains: TEXT, format: TEXT, $ref: TEXT }),
  ],
  ['that refers to its definitions', closed({ a: { $ref: '#/$defs/b' } }, { $defs: { b: closed({}) } })],
  ['with properties that may be null', closed({ a: { type: ['string', 'null'] }, b: { enum: ['x'] } })],
  ['with a property of any kind', closed({ a: { description: 'Anything' } })],
  ['with limits and defaults', closed({ a: { ...TEXT, default: '', minLength: 0 } }, { minProperties: 0 })],
  ['with every format that they know', closed({ a: { anyOf: FORMATS.map((format) => ({ ...TEXT, format })) } })],
])('Chat upstreams take as strict a schema %s', (_which, schema) => {
  expect(isClosedSchema(schema)).toBe(true)
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
  ['that requires what is no property', closed({ a: TEXT }, { required: ['a', 'b'] })],
  ['that requires what is no property, without properties', { ...closed({}), properties: undefined, required: ['b'] }],
  ['that requires what only all objects have', closed({}, { required: ['toString'] })],
  ['with a format that they do not know', within({ ...TEXT, format: 'uri' })],
  ['with more than a reference', closed({ a: { $ref: '#/$defs/b', description: 'B' } }, { $defs: { b: closed({}) } })],
])('Chat upstreams do not take as strict a schema %s', (_which, schema) => {
  expect(isClosedSchema(schema)).toBe(false)
})

it.each([
  ...[
    'allOf',
    'oneOf',
    'not',
    'if',
    'then',
    'else',
    'dependentRequired',
    'dependentSchemas',
    'prefixItems',
    'contains',
  ],
  ...['contentEncoding', 'contentMediaType', 'patternProperties', 'propertyNames'],
  ...['unevaluatedProperties', 'unevaluatedItems'],
])('Chat upstreams do not take as strict a schema with %s', (keyword) => {
  expect(isClosedSchema(closed({ a: { [keyword]: {} } }))).toBe(false)
})
