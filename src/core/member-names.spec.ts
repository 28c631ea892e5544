import { describe, expect, it } from '@jest/globals'
import { cpuMs } from '../../test/support/eventually.js'
import { foldCase, MemberNames } from './member-names.js'

const LAST_CODE_POINT = 0x10ffff
const isSurrogate = (codePoint: number): boolean => codePoint >= 0xd800 && codePoint <= 0xdfff

describe('Names that are folded', () => {
  it('are the same exactly where a comparison that ignores case takes them for the same', () => {
    const wrong: string[] = []
    for (let codePoint = 0x80; codePoint <= LAST_CODE_POINT; codePoint++) {
      const character = String.fromCodePoint(codePoint)
      if (isSurrogate(codePoint) || character.toLowerCase() === character.toUpperCase()) continue
      const pattern = new RegExp(`^${character}$`, 'iu')
      for (const other of new Set([
        character.toLowerCase(),
        character.toUpperCase(),
        character.toUpperCase().toLowerCase(),
      ])) {
        if ((foldCase(character) === foldCase(other)) !== pattern.test(other)) wrong.push(`${character} ${other}`)
      }
    }
    expect(wrong).toEqual([])
  })

  it.each([
    ['Model_Name', 'model_name'],
    ['ſtream', 'stream'],
    ['\u212aey', 'key'],
    ['ΜΟΔΕΛ', 'μοδελ'],
    ['straße', 'straße'],
    ['dıs', 'dıs'],
    ['GRÖSSE(cm)[]{}*+?.^$|\\', 'grösse(cm)[]{}*+?.^$|\\'],
    ['名称[]', '名称[]'],
    ['\ud800A', '\ud800a'],
  ])('%s is %s', (name, folded) => {
    expect(foldCase(name)).toBe(folded)
  })
})

describe('The names of one object', () => {
  const names = new MemberNames(['model', 'stream'])
  const ambiguityOf = (text: string, path = '') => names.ambiguity(JSON.parse(text) as Record<string, unknown>, path)

  it.each([
    ['{"model":1,"Model":2}', 'Model', 'model'],
    ['{"MODEL":2}', 'MODEL', 'model'],
    ['{"\u017ftream":true,"model":1}', '\u017ftream', 'stream'],
    ['{"other":1,"Other":2}', 'Other', 'other'],
  ])('of %s are refused', (text, name, other) => {
    expect(ambiguityOf(text)).toEqual({
      path: name,
      code: 'ambiguous_key',
      message: `Invalid key '${name}': it differs from '${other}' only in case.`,
    })
  })

  it.each(['{}', '{"model":1,"stream":2,"Other":3,"models":4}', '{"a":1,"b":2,"":3}'])('of %s are accepted', (text) => {
    expect(ambiguityOf(text)).toBeUndefined()
  })

  it('are named with the object that has them, and in at most 64 characters', () => {
    expect(ambiguityOf('{"MODEL":1}', 'messages[1]')?.path).toBe('messages[1].MODEL')
    const long = 'x'.repeat(1000)
    expect(ambiguityOf(`{"${long}":1,"${long.toUpperCase()}":2}`)?.path).toBe('X'.repeat(64))
  })

  it('cost nothing where they are as long as a body', () => {
    const long = '\u4e00\u00d6('.repeat(3_000_000)
    const before = cpuMs()
    expect(names.ambiguity({ [long]: 1 }, '')).toBeUndefined()
    expect(cpuMs() - before).toBeLessThan(100)
  })

  it('are checked in time in proportion to their number', () => {
    const many = Object.fromEntries(Array.from({ length: 200_000 }, (_, index) => [`Key-${index}`, index]))
    expect(names.ambiguity(many, '')).toBeUndefined()
    expect(names.ambiguity({ ...many, 'kEY-199999': 1 }, '')?.path).toBe('kEY-199999')
  })
})
