import { describe, expect, it } from '@jest/globals'
import { ownerOf } from './owner.js'

describe('The owner of what a caller made', () => {
  it('is the key id of a known key, never the key of anybody', () => {
    expect(ownerOf({ keyId: 'team-a' })).toBe('team-a')
    expect(ownerOf({ keyId: 'caller', bearer: 'secret' })).toBe('bearer:2bb80d537b1da3e38bd30361aa855686')
  })
})
