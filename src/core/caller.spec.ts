import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { globMatcher, isOwnBearer, ownerOf } from './caller.js'

describe('globMatcher', () => {
  it.each([
    ['tts-1', 'tts-1', true],
    ['tts-1', 'tts-1-hd', false],
    ['tts-*', 'tts-1-hd', true],
    ['tts-*', 'tts-', true],
    ['tts-*', 'xtts-1', false],
    ['*-audio', 'gpt-audio', true],
    ['*-audio', 'gpt-audio-mini', false],
    ['gpt-*-audio-*', 'gpt-4o-audio-preview', true],
    ['gpt-*-audio-*', 'gpt-audio-preview', false],
    ['a*a', 'a', false],
    ['a*a', 'aa', true],
    ['ab*ba', 'aba', false],
    ['*b*b*', 'b', false],
    ['*b*b*', 'xbxbx', true],
    ['*', '', true],
    ['**', 'anything\nat all', true],
    ['GPT-*', 'gpt-4', false],
    ['a.c', 'abc', false],
    ['a.c*', 'abcd', false],
    ['a+[b]*', 'a+[b]c', true],
    ['(x|y)*', 'x', false],
  ])('%s against %j: %s', (glob, name, matches) => {
    expect(globMatcher([glob])(name)).toBe(matches)
  })

  it('allows every name without globs, and none with an empty list', () => {
    expect(globMatcher(undefined)('anything')).toBe(true)
    expect(globMatcher([])('anything')).toBe(false)
  })

  it('agrees with a plain definition of the wildcard', () => {
    const word = fc.string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 6 })
    const name = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 10 })
    const defined = (glob: string, text: string): boolean => {
      if (glob === '') return text === ''
      if (glob.startsWith('*')) return defined(glob.slice(1), text) || (text !== '' && defined(glob, text.slice(1)))
      return text.startsWith(glob.charAt(0)) && defined(glob.slice(1), text.slice(1))
    }
    fc.assert(
      fc.property(word, name, (glob, text) => {
        expect(globMatcher([glob])(text)).toBe(defined(glob, text))
      }),
      { numRuns: 2000 },
    )
  })

  it('decides at once about a name of a million characters', () => {
    const before = process.cpuUsage()
    expect(globMatcher(['*a*a*b'])('a'.repeat(1_000_000))).toBe(false)
    // CPU time in microseconds; a regular expression of the same meaning takes minutes.
    expect(process.cpuUsage(before).user).toBeLessThan(5_000_000)
  })
})

describe('The owner of what a caller made', () => {
  it('is the key id of a known key, never the key itself', () => {
    expect(ownerOf({ keyId: 'team-a' })).toBe('team-a')
    expect(ownerOf({ keyId: 'caller', bearer: 'secret' })).toBe('bearer:2bb80d537b1da3e38bd30361aa855686')
  })

  it('tells callers with bearers of their own from keys, whatever these are called', () => {
    expect(isOwnBearer(ownerOf({ keyId: 'caller', bearer: 'secret' }))).toBe(true)
    for (const keyId of ['team-a', 'bearer', 'bearer.1', '-']) expect(isOwnBearer(ownerOf({ keyId }))).toBe(false)
  })
})
