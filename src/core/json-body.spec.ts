import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { JsonBody, type JsonEdits } from './json-body.js'

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
  .tuple(fc.string({ unit: 'binary', maxLength: 8 }), fc.boolean())
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
  .tuple(fc.string({ unit: 'binary', maxLength: 6 }), fc.boolean(), value, fc.tuple(space, space, space, space))
  .filter(([name]) => !['__proto__', 'constructor', 'prototype'].includes(name))
  .map(([name, escaped, text, spaces]) => ({
    name,
    key: escaped ? escapedSpelling(name) : JSON.stringify(name),
    value: text,
    spaces,
  }))
const members = fc.uniqueArray(member, { selector: ({ name }) => name, minLength: 1, maxLength: 6 })

/** Every character as `\uXXXX`. */
function escapedSpelling(text: string): string {
  const units = [...Array(text.length).keys()].map((index) => text.charCodeAt(index).toString(16).padStart(4, '0'))
  return `"${units.map((unit) => `\\u${unit}`).join('')}"`
}

const textOf = ({ key, value, spaces: [before, afterKey, beforeValue, after] }: Member): string =>
  `${before}${key}${afterKey}:${beforeValue}${value}${after}`

const documentOf = (list: readonly Member[]): string => `{${list.map(textOf).join(',')}}`
const parse = (text: string): JsonBody => JsonBody.parse(Buffer.from(text))
/** White space beside a removed member goes with it; everything else stays. */
const withoutSpace = (text: string): string => text.replace(/[ \t\n\r]/g, '')

describe('An edited JSON body', () => {
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

  it('replaces the value of a key in escaped spelling, so that what was checked is what is sent', () => {
    expect(parse('{"mod\\u0065l":"a"}').edited({ model: '"b"' }).toString()).toBe('{"mod\\u0065l":"b"}')
  })

  it('shows a value as the caller spelled it', () => {
    expect(parse('{"a": 12345678901234567 ,"b":"ä"}').textOf('a')).toBe('12345678901234567')
    expect(parse('{"a":1,"b":"ä" }').textOf('b')).toBe('"ä"')
    expect(parse('{}').textOf('a')).toBeUndefined()
  })
})
