import { describe, expect, it } from '@jest/globals'
import { describeUnknownKey } from './unknown-key.js'

const KNOWN = ['id', 'provider', 'baseUrl', 'credentials', 'priority']

describe('the fault for an unknown key', () => {
  it.each([
    ['base_url', 'baseUrl'],
    ['baseURL', 'baseUrl'],
    ['prority', 'priority'],
    ['credential', 'credentials'],
    ['providers', 'provider'],
  ])('suggests the near one for %s', (written, meant) => {
    expect(describeUnknownKey(written, KNOWN)).toBe(`unknown key "${written}"; did you mean "${meant}"?`)
  })

  it('lists what is allowed when nothing is near', () => {
    expect(describeUnknownKey('colour', KNOWN)).toBe(
      'unknown key "colour"; allowed: id, provider, baseUrl, credentials, priority',
    )
    expect(describeUnknownKey('x', [])).toBe('unknown key "x"; none is allowed here')
  })

  it.each(['sk-live-0123456789abcdef', 'a'.repeat(5000), 'line\nbreak', ''])(
    'does not show a key that may be a secret or garble a log: %#',
    (name) => {
      expect(describeUnknownKey(name, ['a'])).toBe('unknown key (not shown, it may be a secret); allowed: a')
    },
  )
})
