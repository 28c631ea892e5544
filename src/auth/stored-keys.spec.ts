import { createHash } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { type StoredKey, StoredKeys } from './stored-keys.js'

const digest = (key: string): string => createHash('sha256').update(key).digest('hex')

const stored = (given: Partial<StoredKey> = {}): StoredKey => ({
  id: 'a',
  sha256: digest('a'),
  isRevoked: false,
  updatedAtMs: 100,
  ...given,
})

const verdictOf = (keys: StoredKeys, key = 'a'): string => keys.judge(digest(key)).verdict

/** How often it was told that a key is over. */
function countEnds(keys: StoredKeys, key = 'a'): () => number {
  const judged = keys.judge(digest(key))
  if (judged.verdict !== 'valid') throw new Error('the key does not work')
  let count = 0
  judged.standing.onOver(() => (count += 1))
  return () => count
}

describe('Stored keys', () => {
  beforeEach(() => {
    jest.useFakeTimers({ now: 1_000 })
  })
  afterEach(() => {
    jest.useRealTimers()
  })

  it('are judged by what was read last', () => {
    const keys = new StoredKeys()
    expect(verdictOf(keys)).toBe('unknown')
    keys.learn([stored({ models: ['x'] })])
    expect(keys.judge(digest('a'))).toMatchObject({ verdict: 'valid', key: { id: 'a', models: ['x'] } })
    keys.learn([stored({ isRevoked: true, updatedAtMs: 101 })])
    expect(verdictOf(keys)).toBe('revoked')
  })

  it('are not brought back to life by an older reading that comes late, in part or in full', () => {
    const keys = new StoredKeys()
    keys.learn([stored({ isRevoked: true, updatedAtMs: 101 })])
    keys.learn([stored()])
    expect(verdictOf(keys)).toBe('revoked')
    keys.learnAll([stored()], 0)
    expect(verdictOf(keys)).toBe('revoked')
  })

  it('keep the very same key while nothing changes, so that what is compiled for it stays', () => {
    const keys = new StoredKeys()
    keys.learn([stored({ models: ['x'] })])
    const before = keys.judge(digest('a'))
    keys.learnAll([stored({ models: ['x'] })], 0)
    expect('key' in before && keys.judge(digest('a'))).toMatchObject({ key: 'key' in before ? before.key : {} })
    const after = keys.judge(digest('a'))
    expect('key' in before && 'key' in after && before.key === after.key).toBe(true)
  })

  it('expire by the clock, to the millisecond', () => {
    const keys = new StoredKeys()
    keys.learn([stored({ expiresAtMs: 2_000 })])
    jest.setSystemTime(1_999)
    expect(verdictOf(keys)).toBe('valid')
    jest.setSystemTime(2_000)
    expect(verdictOf(keys)).toBe('expired')
    keys.learn([stored({ expiresAtMs: 3_000, updatedAtMs: 101 })])
    expect(verdictOf(keys)).toBe('valid')
  })

  it('that are gone from the store are forgotten, unless they were issued after it was read', () => {
    const keys = new StoredKeys()
    keys.learn([stored({ updatedAtMs: 49 }), stored({ id: 'b', sha256: digest('b'), updatedAtMs: 50 })])
    const ends = countEnds(keys)
    keys.learnAll([], 50)
    expect([verdictOf(keys, 'a'), verdictOf(keys, 'b'), ends()]).toEqual(['unknown', 'valid', 1])
  })

  it('are awaited until all have been read once', () => {
    const keys = new StoredKeys()
    expect(keys.isAwaited).toBe(false)
    keys.await()
    keys.learn([stored()])
    expect(keys.isAwaited).toBe(true)
    keys.learnAll([], 0)
    expect(keys.isAwaited).toBe(false)
  })

  it('tell once that they are revoked, whatever was changed before', () => {
    const keys = new StoredKeys()
    keys.learn([stored()])
    const ends = countEnds(keys)
    keys.learn([stored({ models: ['x'], updatedAtMs: 101 })])
    expect(ends()).toBe(0)
    keys.learn([stored({ isRevoked: true, updatedAtMs: 102 })])
    keys.learn([stored({ isRevoked: true, updatedAtMs: 103 })])
    expect(ends()).toBe(1)
  })

  it('tell that they have expired at the next reading, and again after they were given more time', () => {
    const keys = new StoredKeys()
    keys.learn([stored({ expiresAtMs: 2_000 })])
    const ends = countEnds(keys)
    jest.setSystemTime(2_000)
    expect(ends()).toBe(0)
    keys.learn([])
    keys.learn([])
    expect(ends()).toBe(1)
    keys.learn([stored({ expiresAtMs: 3_000, updatedAtMs: 101 })])
    const endsAgain = countEnds(keys)
    jest.setSystemTime(3_000)
    keys.learn([])
    expect([ends(), endsAgain()]).toEqual([1, 1])
  })

  it('tell nobody who has left, and at once who comes late', () => {
    const keys = new StoredKeys()
    keys.learn([stored()])
    const judged = keys.judge(digest('a'))
    if (judged.verdict !== 'valid') throw new Error('the key does not work')
    const heard: string[] = []
    judged.standing.onOver(() => heard.push('left'))()
    keys.learn([stored({ isRevoked: true, updatedAtMs: 101 })])
    judged.standing.onOver(() => heard.push('late'))
    expect(heard).toEqual(['late'])
  })
})
