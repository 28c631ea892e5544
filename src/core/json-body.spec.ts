import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { codePoint } from '../../test/support/arbitraries.js'
import { piecesOf } from '../../test/support/byte-streams.js'
import { GatewayError } from './errors.js'
import { JsonBody, type JsonEdits, scanJsonObject } from './json-body.js'
import { closingQuote, eventTypeOf, FrameScan, splice } from './json-spans.js'
import { isRecord } from './validation-rules.js'

/** A JSON string with every character as `\uXXXX`. */
function escapedSpelling(text: string): string {
  const units = [...Array(text.length).keys()].map((index) => text.charCodeAt(index).toString(16).padStart(4, '0'))
  return `"${units.map((unit) => `\\u${unit}`).join('')}"`
}

describe('An edited JSON body', () => {
  interface Member {
    readonly name: string
    /** The key's spelling with its quotes; may be escaped. */
    readonly key: string
    readonly value: string
    /** White space before the key, before the colon, behind it, and behind the value. */
    readonly spaces: readonly [string, string, string, string]
  }

  const space = fc.string({ unit: fc.constantFrom(' ', '\t', '\n', '\r'), maxLength: 3 })
  const spelledText = fc
    .tuple(fc.string({ unit: codePoint, maxLength: 8 }), fc.boolean())
    .map(([text, escaped]) => (escaped ? escapedSpelling(text) : JSON.stringify(text)))
  const number = fc.oneof(
    fc.constantFrom('1.0', '1e5', '-0', '12345678901234567', '1E-7', '0.10', '99999999999999999999'),
    fc.integer().map(String),
  )
  const scalar = fc.oneof(spelledText, number, fc.constantFrom('true', 'false', 'null'))
  const value = fc.oneof(
    scalar,
    fc.array(scalar, { maxLength: 3 }).map((items) => `[ ${items.join(' , ')}]`),
    fc.tuple(spelledText, scalar).map(([key, item]) => `{"_${key.slice(1)}:${item} }`),
  )
  const member: fc.Arbitrary<Member> = fc
    .tuple(fc.string({ unit: codePoint, maxLength: 6 }), fc.boolean(), value, fc.tuple(space, space, space, space))
    .filter(([name]) => !['__proto__', 'constructor', 'prototype'].includes(name))
    .map(([name, escaped, text, spaces]) => ({
      name,
      key: escaped ? escapedSpelling(name) : JSON.stringify(name),
      value: text,
      spaces,
    }))
  const members = fc.uniqueArray(member, { selector: ({ name }) => name, minLength: 1, maxLength: 6 })

  const textOf = ({ key, value, spaces: [before, afterKey, beforeValue, after] }: Member): string =>
    `${before}${key}${afterKey}:${beforeValue}${value}${after}`

  const documentOf = (list: readonly Member[]): string => `{${list.map(textOf).join(',')}}`
  const parse = (text: string): JsonBody => JsonBody.parse(Buffer.from(text))
  /** White space beside a removed member goes with it; everything else stays. */
  const withoutSpace = (text: string): string => text.replace(/[ \t\n\r]/g, '')

  it('changes nothing but the bytes of the value that was replaced', () => {
    fc.assert(
      fc.property(members, fc.nat(), (list, pick) => {
        const chosen = list[pick % list.length] as Member
        const edited = parse(documentOf(list)).edited({ [chosen.name]: '"other"' })
        const expected = list.map((one) => (one === chosen ? { ...one, value: '"other"' } : one))
        expect(edited.toString()).toBe(documentOf(expected))
      }),
      { numRuns: 1000 },
    )
  })

  it('loses exactly the members that were removed, and keeps the spelling of all others', () => {
    fc.assert(
      fc.property(members, fc.array(fc.nat(), { maxLength: 6 }), (list, picks) => {
        const removed = new Set(picks.map((pick) => list[pick % list.length]))
        const kept = list.filter((one) => !removed.has(one))
        const edits: JsonEdits = Object.fromEntries([...removed].map((one) => [one?.name ?? '', undefined]))
        const edited = parse(documentOf(list)).edited(edits).toString()
        expect(withoutSpace(edited)).toBe(withoutSpace(documentOf(kept)))
        expect(JSON.parse(edited)).toEqual(JSON.parse(documentOf(kept)))
        for (const one of kept) expect(edited).toContain(textOf(one).trim())
      }),
      { numRuns: 1000 },
    )
  })

  it('can replace, remove and append at once, and is the JSON that was meant', () => {
    fc.assert(
      fc.property(
        members,
        fc.array(fc.constantFrom('keep', 'remove', 'replace')),
        fc.boolean(),
        (list, plan, append) => {
          const edits: Record<string, string | undefined> = {}
          const expected = new Map(list.map((one) => [one.name, JSON.parse(one.value) as unknown]))
          for (const [index, { name }] of list.entries()) {
            if (plan[index] === 'remove') edits[name] = undefined
            if (plan[index] === 'replace') edits[name] = '{"new":1.0}'
            if (plan[index] === 'remove') expected.delete(name)
            if (plan[index] === 'replace') expected.set(name, { new: 1 })
          }
          if (append && !expected.has('appended!')) {
            edits['appended!'] = 'true'
            expected.set('appended!', true)
          }
          const edited = parse(documentOf(list)).edited(edits).toString()
          expect(new Map(Object.entries(JSON.parse(edited) as object))).toEqual(expected)
        },
      ),
      { numRuns: 1000 },
    )
  })

  it.each([
    ['the first', '{ "a" : 1 , "b":2, "c":3 }', ['a'], '{ "b":2, "c":3 }'],
    ['a middle one', '{ "a" : 1 , "b":2, "c":3 }', ['b'], '{ "a" : 1, "c":3 }'],
    ['the last', '{ "a" : 1 , "b":2, "c":3 }', ['c'], '{ "a" : 1 , "b":2 }'],
    ['the only one', '{ "a" : 1 }', ['a'], '{  }'],
    ['the first two', '{"a":1,"b":2,"c":3}', ['b', 'a'], '{"c":3}'],
    ['first and last', '{"a":1,"b":2,"c":3}', ['a', 'c'], '{"b":2}'],
    ['all', '{"a":1,"b":2,"c":3}', ['a', 'b', 'c'], '{}'],
    ['one that is not there', '{"a":1}', ['z'], '{"a":1}'],
  ])('loses %s', (_name, text, names, expected) => {
    expect(
      parse(text)
        .edited(Object.fromEntries(names.map((name) => [name, undefined])))
        .toString(),
    ).toBe(expected)
  })

  it.each([
    ['{}', '{"x":1}'],
    ['{ }', '{"x":1 }'],
    ['{"a":[1.0] }', '{"a":[1.0],"x":1 }'],
  ])('gains a member at the end of %s', (text, expected) => {
    expect(parse(text).edited({ x: '1' }).toString()).toBe(expected)
  })

  it('gains a member where the only other one leaves', () => {
    expect(parse('{"a":1}').edited({ a: undefined, x: '1', y: '2' }).toString()).toBe('{"x":1,"y":2}')
  })

  it('is the very buffer of the caller when there is nothing to edit', () => {
    const body = parse('{"a":1}')
    expect(body.edited({})).toBe(body.bytes)
    expect(body.edited({ b: undefined })).toBe(body.bytes)
  })

  it('is the same in pieces, of a large body without a copy', () => {
    for (const length of [10, 1_048_500, 1_048_576, 3_000_000]) {
      const body = parse(JSON.stringify({ a: 1, text: 'x'.repeat(length), z: true }))
      const pieces = body.editedPieces({ a: '"new"', z: undefined, added: '7' })
      expect(Buffer.concat(pieces).equals(body.edited({ a: '"new"', z: undefined, added: '7' }))).toBe(true)
      expect(pieces.length > 1).toBe(body.bytes.length > 1_048_576)
    }
  })

  it('replaces the value of a key in escaped spelling, so that what was checked is what is sent', () => {
    expect(parse('{"mod\\u0065l":"a"}').edited({ model: '"b"' }).toString()).toBe('{"mod\\u0065l":"b"}')
  })

  it('shows a value as the caller spelled it', () => {
    expect(parse('{"a": 12345678901234567 ,"b":"ä"}').textOf('a')).toBe('12345678901234567')
    expect(parse('{"a":1,"b":"ä" }').textOf('b')).toBe('"ä"')
    expect(parse('{}').textOf('a')).toBeUndefined()
  })
})

/** So many members of an object, and a comma. */
const others = (count: number): string => Array.from({ length: count }, (_none, index) => `"k${index}":0,`).join('')

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
    const values = [...scanJsonObject(bytes).members].map(([name, span]) => [
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
    expect([...scanJsonObject(bytes).members.keys()]).toEqual(['a', 'b', 'c'])
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

  const valuesIn = (text: string, source?: 'upstream'): number => {
    let counted = 0
    JsonBody.parse(Buffer.from(text), {
      ...(source === undefined ? {} : { source }),
      beforeParsing: (values) => {
        counted = values
      },
    })
    return counted
  }

  it.each([
    ['numbers', '0,'],
    ['objects', '{},'],
    ['lists', '[],'],
    ['texts with commas', '",,,,",'],
  ])('is refused with more than 65,536 values that are %s', (_name, value) => {
    const body = (count: number): string => `{"a":[${value.repeat(count)}0]}`
    // With the object, the list and the zero.
    expect(valuesIn(body(65_533))).toBe(65_536)
    expect(refusalOf(body(65_534))).toMatchObject({ details: { code: 'json_too_many_values' } })
  })

  it('may have more where its endpoint says so', () => {
    const body = Buffer.from('{"a":[0,0,0]}')
    expect(JsonBody.parse(body, { maximumValues: 5 }).fields).toEqual({ a: [0, 0, 0] })
    expect(() => JsonBody.parse(body, { maximumValues: 4 })).toThrow('more than 4 values')
  })

  it('tells how many values it holds before it is parsed', () => {
    const countOf = (value: unknown): number =>
      1 +
      (typeof value === 'object' && value !== null ? Object.values(value) : []).reduce<number>(
        (sum, inner) => sum + countOf(inner),
        0,
      )
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(undefined, 1), (value, space) => {
        const text = JSON.stringify({ value }, undefined, space)
        fc.pre(!/__proto__|constructor|prototype/.test(text))
        expect(valuesIn(text)).toBe(countOf({ value }))
      }),
    )
    const refuse = (): never => {
      throw new Error('no room')
    }
    expect(() => JsonBody.parse(Buffer.from('{"a":'), { beforeParsing: refuse })).toThrow('no room')
  })

  it('of an upstream may have any number of values', () => {
    expect(valuesIn(`{"a":[${'0,'.repeat(70_000)}0]}`, 'upstream')).toBe(70_003)
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

  it.each([
    '{"a":{"model":1,"model":2}}',
    '{"a":[{"x":1,"model":1},{"model":1,"mod\\u0065l":2}]}',
    '{"a":{"model":1,"b":{"model":1,"c":[{}]},"model":2}}',
    `{"a":{"model":1,${others(40)}"model":2}}`,
    // Beyond the keys that are compared one by one.
    `{"a":{${others(19)}"model":1,"model":2}}`,
  ])('is refused when a key stands twice in an object below the top level: %s', (text) => {
    expect(refusalOf(text)).toMatchObject({ details: { code: 'duplicate_key', param: 'model' } })
  })

  it('may have a key in several objects', () => {
    const text = '{"a":[{"model":1,"b":{"model":2}},{"model":3}],"model":4,"c":{"model":5}}'
    expect(JsonBody.parse(Buffer.from(text)).fields).toEqual(JSON.parse(text))
  })

  it('of an upstream may repeat a key below the top level: its last value counts', () => {
    const bytes = Buffer.from('{"a":{"model":1,"model":2}}')
    expect(JsonBody.parse(bytes, { source: 'upstream' }).fields).toEqual({ a: { model: 2 } })
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

describe('The quote that closes a string', () => {
  /** Where it stands in all of the pieces, looked for in one after the other; their length when it does not. */
  function searched(pieces: readonly Buffer[]): number {
    let from = 0
    let before = 0
    for (const piece of pieces) {
      const quote = closingQuote(piece, from)
      if (quote < piece.length) return before + quote
      from = quote - piece.length
      before += piece.length
    }
    return before
  }

  it('is found wherever the string is cut, near and far, behind escapes of any kind', () => {
    const unit = fc.constantFrom('"', '\\', '\n', 'a', 'é', 'plain words '.repeat(5))
    const text = fc.string({ unit, maxLength: 40 })
    fc.assert(
      fc.property(text, fc.array(fc.nat(200)), fc.boolean(), (text, cuts, isUnclosed) => {
        const content = JSON.stringify(text).slice(1, -1)
        const bytes = Buffer.from(isUnclosed ? content : `${content}","next":"\\"`)
        expect(searched(piecesOf(bytes, cuts))).toBe(Buffer.byteLength(content))
      }),
      { numRuns: 2000 },
    )
  })
})

describe('The frame scan', () => {
  const space = fc.string({ unit: fc.constantFrom(' ', '\t', '\n', '\r'), maxLength: 2 })

  const word = fc.oneof(
    fc.constantFrom('type', 'obfuscation', 'delta', '', '\\', '"', '{"type":"x"}', '\\"'),
    fc.string({ unit: codePoint, maxLength: 60 }),
  )
  const spelled = fc
    .tuple(word, fc.boolean())
    .map(([text, isEscaped]) => (isEscaped ? escapedSpelling(text) : JSON.stringify(text)))
  const { value } = fc.letrec<{ value: string; member: string }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      spelled,
      fc.constantFrom('1.0', '-0', '12345678901234567', '1e5', 'true', 'false', 'null'),
      fc.array(tie('value'), { maxLength: 3 }).map((items) => `[ ${items.join(' ,')}]`),
      fc.array(tie('member'), { maxLength: 3 }).map((members) => `{${members.join(',')} }`),
    ),
    member: fc.tuple(spelled, space, tie('value')).map(([key, gap, text]) => `${gap}${key}${gap}:${gap}${text}${gap}`),
  }))
  const member = fc.tuple(spelled, space, value).map(([key, gap, text]) => `${gap}${key}${gap}:${gap}${text}${gap}`)
  const frame = fc
    .tuple(space, fc.array(member, { maxLength: 6 }))
    .map(([gap, members]) => `${gap}{${members.join(',')}}${gap}`)

  const parsed = (text: string): Record<string, unknown> => JSON.parse(text) as Record<string, unknown>

  function parsedOrNothing(bytes: Buffer): unknown {
    try {
      return JSON.parse(bytes.toString())
    } catch {
      return undefined
    }
  }

  it('finds the type that a parser finds: the last one at the top level, however it is spelled', () => {
    fc.assert(
      fc.property(frame, (text) => {
        const bytes = Buffer.from(text)
        const expected = parsed(text)['type']
        const found = eventTypeOf(bytes)
        expect(found?.type).toBe(typeof expected === 'string' ? expected : undefined)
        if (found !== undefined) expect(JSON.parse(bytes.toString('utf8', found.start, found.end))).toBe(expected)
      }),
      { numRuns: 3000 },
    )
  })

  it('replaces the type and cuts a member out, and leaves the rest what it was', () => {
    fc.assert(
      fc.property(frame, (text) => {
        const bytes = Buffer.from(text)
        const scan = FrameScan.of(bytes)
        const type = scan?.type()
        const edits = type === undefined ? [] : [{ start: type.start, end: type.end, text: '"new"' }]
        const edited = splice(bytes, [...(scan?.removal('obfuscation') ?? []), ...edits])
        const rest = parsed(text)
        Reflect.deleteProperty(rest, 'obfuscation')
        expect(parsed(edited.toString())).toEqual(type === undefined ? rest : { ...rest, type: 'new' })
      }),
      { numRuns: 3000 },
    )
  })

  it('never throws on damaged bytes, and agrees with the parser on those that are still an object', () => {
    const damaged = fc.oneof(
      fc.uint8Array({ maxLength: 60 }).map((array) => Buffer.from(array)),
      fc.tuple(frame, fc.nat(), fc.nat(255)).map(([text, place, byte]) => {
        const bytes = Buffer.from(text)
        bytes[place % bytes.length] = byte
        return bytes
      }),
      fc.tuple(frame, fc.nat()).map(([text, length]) => Buffer.from(text).subarray(0, length % (text.length + 1))),
    )
    fc.assert(
      fc.property(damaged, (bytes) => {
        const found = eventTypeOf(bytes)?.type
        const value = parsedOrNothing(bytes)
        if (isRecord(value)) expect(found).toBe(typeof value['type'] === 'string' ? value['type'] : undefined)
        else if (value !== undefined) expect(found).toBeUndefined()
      }),
      { numRuns: 5000 },
    )
  })

  it.each([
    '',
    ' ',
    '[]',
    '"type"',
    '{',
    '{"type"',
    '{"type":',
    '{"type":"a"',
    '{"type":"a"}x',
    '{"type":1}',
    '{"a":{"type":"b"}}',
    'null',
  ])('finds no type in %j', (text) => {
    expect(eventTypeOf(Buffer.from(text))).toBeUndefined()
  })

  it('steps over a payload that is full of quotes, brackets and backslashes', () => {
    const payload = '{"type":"no"}]}\\"'.repeat(200)
    const text = JSON.stringify({ delta: payload, nested: { type: 'inner', list: [payload] }, type: 'outer' })
    expect(eventTypeOf(Buffer.from(text))?.type).toBe('outer')
  })

  it('does not list the members of a frame that is made of nothing else', () => {
    const text = `{${'"a":1,'.repeat(5000)}"type":"b"}`
    expect(eventTypeOf(Buffer.from(text))).toBeUndefined()
  })

  it('returns the very same frame when there is nothing to change', () => {
    const bytes = Buffer.from('{"type":"a"}')
    expect(splice(bytes, [])).toBe(bytes)
  })
})
