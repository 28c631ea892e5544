import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { eventTypeOf, FrameScan, splice } from './frame-scan.js'
import { isRecord } from './validation-rules.js'

const space = fc.string({ unit: fc.constantFrom(' ', '\t', '\n', '\r'), maxLength: 2 })

/** Every character as `\uXXXX`. */
const escapedSpelling = (text: string): string =>
  `"${[...Array(text.length).keys()].map((index) => `\\u${text.charCodeAt(index).toString(16).padStart(4, '0')}`).join('')}"`

const word = fc.oneof(
  fc.constantFrom('type', 'obfuscation', 'delta', '', '\\', '"', '{"type":"x"}', '\\"'),
  fc.string({ unit: 'binary', maxLength: 60 }),
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

describe('The frame scan', () => {
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
