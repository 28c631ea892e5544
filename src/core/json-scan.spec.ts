import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { GatewayError } from './gateway-error.js'
import { JsonBody } from './json-body.js'
import { scanJsonObject } from './json-scan.js'

const nested = (levels: number): string => `${'{"a":'.repeat(levels - 1)}{}${'}'.repeat(levels - 1)}`

function refusalOf(text: string | Buffer): GatewayError {
  try {
    JsonBody.parse(Buffer.from(text))
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
  throw new Error('the body was accepted')
}

describe('scanJsonObject', () => {
  it('says where each top-level value begins and ends, whatever stands around and inside it', () => {
    const text = ' { "model" : "a\\"b" ,"n":[1,{"x":"}"},","] , "deep":{"model":"inner"}\n, "end":1.0 } '
    const bytes = Buffer.from(text)
    const values = [...scanJsonObject(bytes)].map(([name, span]) => [
      name,
      bytes.toString('utf8', span.valueStart, span.valueEnd),
    ])
    expect(values).toEqual([
      ['model', '"a\\"b"'],
      ['n', '[1,{"x":"}"},","]'],
      ['deep', '{"model":"inner"}'],
      ['end', '1.0'],
    ])
  })

  it('counts an even number of backslashes before a quote as the end of the text', () => {
    const bytes = Buffer.from('{"a":"\\\\","b":"\\\\\\"","c":"\\\\\\\\"}')
    expect([...scanJsonObject(bytes).keys()]).toEqual(['a', 'b', 'c'])
  })
})

describe('A JSON body', () => {
  it('may be 64 levels deep, counting objects and lists alike', () => {
    expect(JsonBody.parse(Buffer.from(nested(64))).fields).toHaveProperty('a')
    expect(JsonBody.parse(Buffer.from(`{"a":${'['.repeat(63)}${']'.repeat(63)}}`)).fields).toHaveProperty('a')
  })

  it.each([nested(65), `{"a":${'['.repeat(64)}${']'.repeat(64)}}`])('is refused at 65 levels', (text) => {
    expect(refusalOf(text)).toMatchObject({ kind: 'invalid_request', details: { code: 'json_too_deep' } })
  })

  it('is refused at level 65 without a look at the ten megabytes behind it', () => {
    const bomb = Buffer.alloc(10 * 1024 * 1024, '[')
    bomb.write('{"a":')
    let reads = 0
    const watched = new Proxy(bomb, {
      get: (target, name) => {
        reads++
        const value: unknown = Reflect.get(target, name, target)
        return typeof value === 'function' ? (value.bind(target) as unknown) : value
      },
    })
    expect(() => scanJsonObject(watched)).toThrow('64 levels')
    expect(reads).toBeLessThan(1000)
  })

  it('does not count brackets inside texts as levels', () => {
    const text = '['.repeat(1000)
    expect(JsonBody.parse(Buffer.from(JSON.stringify({ text }))).fields).toEqual({ text })
  })

  it.each([
    '{"model":"a","model":"b"}',
    '{"model":"a","x":{},"mod\\u0065l":"b"}',
    '{"mod\\u0065l":"a","m\\u006fdel":"b"}',
  ])('is refused when a top-level key stands twice, however it is spelled: %s', (text) => {
    expect(refusalOf(text)).toMatchObject({
      kind: 'invalid_request',
      details: { code: 'duplicate_key', param: 'model' },
    })
  })

  it('may repeat a key below the top level, where nothing is authorised', () => {
    expect(JsonBody.parse(Buffer.from('{"a":{"model":1,"model":2}}')).fields).toEqual({ a: { model: 2 } })
  })

  it('names a key that stands twice in at most 64 characters, however long the caller made it', () => {
    const key = 'k'.repeat(100_000)
    const { message, details } = refusalOf(`{"${key}":1,"${key}":2}`)
    expect(details.param).toBe('k'.repeat(64))
    expect(message.length).toBeLessThan(200)
  })

  it.each(['__proto__', 'constructor', 'prototype', '\\u005f_proto__', 'constructo\\u0072', 'proto\\u0074ype'])(
    'is refused when the key %s stands anywhere in it',
    (key) => {
      for (const text of [`{"${key}":1}`, `{"a":{"${key}":1}}`, `{"a":[[{"b":{"${key}" : {}}}]]}`]) {
        expect(refusalOf(text)).toMatchObject({ kind: 'invalid_request', details: { code: 'forbidden_key' } })
      }
    },
  )

  it('may hold those words as values', () => {
    const text = '{"a":"__proto__","b":["constructor","prototype"],"c":"\\"constructor\\":1"}'
    expect(JsonBody.parse(Buffer.from(text)).bytes.toString()).toBe(text)
  })

  it.each([
    ['an unfinished character', Buffer.from([0x7b, 0x22, 0x61, 0x22, 0x3a, 0x22, 0xc3, 0x22, 0x7d])],
    ['an encoded surrogate', Buffer.from([0x7b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x3a, 0x31, 0x7d])],
    ['a byte order mark', Buffer.from('\ufeff{"a":1}')],
    ['UTF-16', Buffer.from('{"a":1}', 'utf16le')],
    ['nothing', Buffer.alloc(0)],
    ['a list', Buffer.from('[{"model":"a"}]')],
    ['a number', Buffer.from('1')],
    ['a text', Buffer.from('"model"')],
    ['null', Buffer.from('null')],
    ['two objects', Buffer.from('{}{}')],
    ['a comma too many', Buffer.from('{"a":1,}')],
    ['an unclosed text', Buffer.from('{"a":"b')],
    ['a comment', Buffer.from('{"a":1}//')],
  ])('is refused as invalid_json when it is %s, without a word of it in the message', (_name, bytes) => {
    const error = refusalOf(bytes)
    expect(error).toMatchObject({ kind: 'invalid_request', details: { code: 'invalid_json' } })
    expect(error.message).toMatch(/^The request body (?:is not valid UTF-8|is not valid JSON|must be a JSON object)\.$/)
  })

  it('is accepted or refused with a GatewayError, whatever bytes come', () => {
    const jsonish = fc.array(fc.constantFrom('{', '}', '[', ']', '"', ':', ',', '\\', '\\u00', 'model', '1', ' ', '\n'))
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array)),
      jsonish.map((parts) => Buffer.from(parts.join(''))),
    )
    fc.assert(
      fc.property(bytes, (body) => {
        try {
          expect(JsonBody.parse(body).bytes).toBe(body)
        } catch (error) {
          expect(error).toBeInstanceOf(GatewayError)
          expect(error).toMatchObject({ kind: 'invalid_request' })
        }
      }),
      { numRuns: 2000 },
    )
  })
})
