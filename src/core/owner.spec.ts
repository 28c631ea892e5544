import { describe, expect, it } from '@jest/globals'
import { isOwnBearer, ownerOf } from './owner.js'

describe('The owner of what a caller made', () => {
  it('is the key id of a known key, never the key of anybody', () => {
    expect(ownerOf({ keyId: 'team-a' })).toBe('team-a')
    expect(ownerOf({ keyId: 'caller', bearer: 'secret' })).toBe('bearer:2bb80d537b1da3e38bd30361aa855686')
  })

  it('tells callers with bearers of their own from keys, whatever these are called', () => {
    expect(isOwnBearer(ownerOf({ keyId: 'caller', bearer: 'secret' }))).toBe(true)
    for (const keyId of ['team-a', 'bearer', 'bearer.1', '-']) expect(isOwnBearer(ownerOf({ keyId }))).toBe(false)
  })
})
