import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { codePoint } from '../../test/support/arbitraries.js'
import { GatewayError } from './errors.js'
import {
  anyOf,
  decimal,
  type FieldRule,
  flag,
  integer,
  integerAmong,
  list,
  type MetadataShape,
  named,
  oneOf,
  optional,
  readMetadata,
  record,
  required,
  text,
} from './validation-rules.js'

const SHAPE: MetadataShape = {
  boost: oneOf(['auto', 'none']),
  voice: { speed: decimal({ minimum: 0.5, maximum: 2 }), rate: integerAmong([8000, 16000]), loud: flag },
}

function refusal(metadata: unknown): GatewayError {
  try {
    readMetadata(metadata, SHAPE)
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
  throw new Error('nothing was refused')
}

describe('metadata rules', () => {
  it.each([undefined, null, {}])('give an empty overlay for %j', (metadata) => {
    expect(readMetadata(metadata, SHAPE)).toEqual({})
  })

  it('hand back what the shape names, without null members, and leave the original alone', () => {
    const metadata = { boost: 'auto', voice: { speed: 1.5, rate: 8000, loud: null } }
    const read = readMetadata(metadata, SHAPE)
    expect(read).toEqual({ boost: 'auto', voice: { speed: 1.5, rate: 8000 } })
    expect(read['voice']).not.toBe(metadata.voice)
    expect(readMetadata({ boost: null, voice: null }, SHAPE)).toEqual({})
  })

  it.each([
    ['metadata', [], 'invalid_type'],
    ['metadata', 'auto', 'invalid_type'],
    ['metadata.voice', { voice: [] }, 'invalid_type'],
    ['metadata.voice', { voice: 'loud' }, 'invalid_type'],
    ['metadata.boost', { boost: {} }, 'invalid_type'],
    ['metadata.boost', { boost: 'AUTO' }, 'invalid_value'],
    ['metadata.voice.speed', { voice: { speed: 2.01 } }, 'decimal_above_max_value'],
    ['metadata.voice.speed', { voice: { speed: '1' } }, 'invalid_type'],
    ['metadata.voice.speed', { voice: { speed: Number.NaN } }, 'invalid_type'],
    ['metadata.voice.rate', { voice: { rate: 24000 } }, 'invalid_value'],
    ['metadata.voice.rate', { voice: { rate: 8000.5 } }, 'invalid_type'],
    ['metadata.voice.loud', { voice: { loud: 1 } }, 'invalid_type'],
    ['metadata.pitch', { pitch: 1 }, 'unknown_parameter'],
    ['metadata.pitch', { pitch: null }, 'unknown_parameter'],
    ['metadata.voice.pitch', { voice: { speed: 1, pitch: 1 } }, 'unknown_parameter'],
  ])('refuse at %s what stands in %j', (param, metadata, code) => {
    expect(refusal(metadata)).toMatchObject({ kind: 'invalid_request', details: { param, code } })
  })

  it('say which names are supported', () => {
    expect(refusal({ voice: { pitch: 1 } }).message).toBe(
      "Unknown parameter: 'metadata.voice.pitch'. Supported parameters in 'metadata.voice' are: speed, rate, loud.",
    )
  })

  it.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])('treat %s as the unknown name it is', (name) => {
    for (const text of [`{"${name}":{"speed":1}}`, `{"voice":{"${name}":{"speed":1}}}`]) {
      expect(refusal(JSON.parse(text)).details.code).toBe('unknown_parameter')
    }
  })

  it('repeat no name of the caller at length or with its control characters', () => {
    const name = `<script>\u0007\n${'x'.repeat(10_000)}`
    const { message, details } = refusal({ voice: { [name]: 1 } })
    expect(message.length).toBeLessThan(300)
    expect(message).not.toMatch(/[\p{Cc}<>]/u)
    expect(details.param).toBe('metadata.voice')
  })

  it('accept or refuse any JSON value, and what they accept holds names of the shape alone', () => {
    const named = fc.record({ boost: fc.anything(), voice: fc.anything() }, { requiredKeys: [] })
    fc.assert(
      fc.property(
        fc.oneof(fc.jsonValue({ stringUnit: codePoint }), named, fc.record({ voice: fc.object() })),
        (metadata) => {
          let read: Record<string, unknown>
          try {
            read = readMetadata(metadata, SHAPE)
          } catch (error) {
            expect(error).toBeInstanceOf(GatewayError)
            return
          }
          for (const name of Object.keys(read)) expect(['boost', 'voice']).toContain(name)
          expect(Object.getPrototypeOf(read)).toBe(Object.prototype)
        },
      ),
      { numRuns: 500 },
    )
  })
})

describe('The schema of a rule', () => {
  it.each<readonly [string, FieldRule, object]>([
    [
      'of a text',
      text({ allowBlank: false, maximumCharacters: 9 }),
      { type: 'string', minLength: 1, pattern: '\\S', maxLength: 9 },
    ],
    ['of any text', text(), { type: 'string' }],
    ['of a number', decimal({ minimum: 0, maximum: 2 }), { type: 'number', minimum: 0, maximum: 2 }],
    ['of what may be null', optional(integer({ minimum: 1 })), { type: ['integer', 'null'], minimum: 1 }],
    ['of what must be there', required(flag), { type: 'boolean' }],
    [
      'of a word that may be null',
      optional(oneOf(['a', 'b'])),
      { anyOf: [{ type: 'string', enum: ['a', 'b'] }, { type: 'null' }] },
    ],
    ['of either', anyOf('a text or a flag', text(), flag), { anyOf: [{ type: 'string' }, { type: 'boolean' }] }],
    [
      'of a list',
      list(text(), { minimumItems: 1, maximumItems: 4 }),
      { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: 4 },
    ],
    [
      'of an object',
      record({ role: required(text()), note: optional(text()) }),
      {
        type: 'object',
        additionalProperties: true,
        required: ['role'],
        properties: { role: { type: 'string' }, note: { type: ['string', 'null'] } },
      },
    ],
  ])('is that of what passes: %s', (_what, rule, schema) => {
    expect(rule.schema).toEqual(schema)
  })

  it('has one name: a second would be that of all places of the rule', () => {
    const rule = named('Title', 'What it is', text())
    expect(rule.schema).toEqual({ type: 'string', title: 'Title', description: 'What it is' })
    expect(() => named('Other', 'What it is', rule)).toThrow('A rule called Other is called Title already.')
  })

  it('has the longest list that passes', () => {
    const few = list(flag, { maximumItems: 1 })
    expect(few([true], 'list')).toBeUndefined()
    expect(few([true, 7], 'list')).toMatchObject({ code: 'array_above_max_length', path: 'list' })
  })
})
