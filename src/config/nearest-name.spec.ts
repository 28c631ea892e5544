import { describe, expect, it } from '@jest/globals'
import { nearestName } from './nearest-name.js'

const NAMES = ['gpt-4-turbo', 'gpt-4o', 'gpt-4o-mini', 'o1', 'claude-opus-5', 'claude-opus-5-5', 'whisper-1']

describe('The nearest name', () => {
  it.each([
    ['gpt-9-turbo', 'gpt-4-turbo'],
    ['claude-opus-9', 'claude-opus-5'],
    ['claude-opus-5.5', 'claude-opus-5-5'],
    ['gpt4o', 'gpt-4o'],
    ['GPT-4O-MINI', 'gpt-4o-mini'],
    ['wisper-1', 'whisper-1'],
  ])('to %s is %s', (wrong, meant) => {
    expect(nearestName(wrong, NAMES)).toBe(meant)
  })

  it.each(['', 'x', 'llama-3', 'nobody-knows', 'o'.repeat(100_000)])('to %.20s is none', (wrong) => {
    expect(nearestName(wrong, NAMES)).toBeUndefined()
  })

  it('is one that may be used, and few are asked about', () => {
    const asked: string[] = []
    const isUsable = (name: string): boolean => asked.push(name) > 0 && name !== 'claude-opus-5'
    expect(nearestName('claude-opus-9', NAMES, { isUsable })).toBe('claude-opus-5-5')
    expect(asked).toEqual(['claude-opus-5', 'claude-opus-5-5'])
  })

  it('is no name that is longer than names are', () => {
    expect(nearestName(`${'a'.repeat(63)}b`, ['a'.repeat(64), 'a'.repeat(65)])).toBe('a'.repeat(64))
    expect(nearestName('a'.repeat(64), ['a'.repeat(65)])).toBeUndefined()
  })
})
