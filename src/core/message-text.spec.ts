import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { presentableMessage, quoted, scrubbedJson, scrubMessage } from './message-text.js'

describe('scrubMessage', () => {
  it.each([
    ['Visit https://platform.openai.com/account?x=1 now', 'Visit [address] now'],
    ['at "https://a.example/b" there', 'at "[address]" there'],
    ['wss://realtime.example:443/v1, closed', '[address] closed'],
    ['no route to api.openai.com:443', 'no route to [host]'],
    ['host upstream-1.prod.internal.', 'host [host].'],
    ['..api.openai.com', '..[host]'],
    ['connect ECONNREFUSED 10.1.2.3:8443', 'connect ECONNREFUSED [host]'],
    ['connect ECONNREFUSED ::1:8443', 'connect ECONNREFUSED [host]'],
    ['getaddrinfo ENOTFOUND upstream-7', 'getaddrinfo ENOTFOUND [host]'],
    ['(attempted address: upstream-7:443, timeout: 10ms)', '(attempted address: [host], timeout: 10ms)'],
    ['Organization org-AbC123 in proj_xyz9', 'Organization [account] in [account]'],
    ['Incorrect API key provided: sk-proj-abc***xyz.', 'Incorrect API key provided: [key].'],
    ['header Bearer eyJhbGciOi.x.y seen', 'header Bearer [key] seen'],
    ['whsec_MfKQ9r8GKYqr', '[key]'],
  ])('takes hosts, accounts and keys out of %j', (text, scrubbed) => {
    expect(scrubMessage(text)).toBe(scrubbed)
  })

  it.each([
    "Invalid type for 'messages[2].role': expected a string, but got 1.5 instead.",
    'The model gpt-4o-mini-2024-07-18 does not exist.',
    'Rate limit reached: 3 requests per min. Try again in 20s.',
    'Expected a value <= 2.0, e.g. 1.',
  ])('leaves an ordinary message alone: %s', (text) => {
    expect(scrubMessage(text)).toBe(text)
  })

  it('takes CPU time in proportion to the text, whatever an upstream echoes', () => {
    const cost = (text: string): number => {
      const before = process.cpuUsage()
      scrubMessage(text)
      return process.cpuUsage(before).user / 1000
    }
    // A pattern that is quadratic takes 40 s for one of these, a linear one some milliseconds.
    for (const part of ['a.', 'a-', 'a', '1.', 'com.', 'sk-', 'Bearer ', 'org-', 'https://']) {
      expect(cost(part.repeat(262_144 / part.length))).toBeLessThan(5000)
    }
  })
})

describe('scrubbedJson', () => {
  it('scrubs every text of a value and keeps identifiers, numbers and keys', () => {
    const value = {
      error: { message: 'at https://a.example', code: 'key_expired', param: 'org-name', type: 'key_error', n: 1.5 },
      debug: [{ url: 'https://b.example', request_id: 'org-1234' }],
    }
    expect(JSON.parse(scrubbedJson(value))).toEqual({
      error: { ...value.error, message: 'at [address]' },
      debug: [{ url: '[address]', request_id: 'org-1234' }],
    })
  })
})

describe('presentableMessage', () => {
  it('is never longer than 512 characters, never holds a control character or half a character', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', minLength: 0, maxLength: 700 }), (text) => {
        const message = presentableMessage(text)
        expect(message.length).toBeLessThanOrEqual(512)
        expect(message).not.toMatch(/[\p{Cc}\u2028\u2029]/u)
        expect(Buffer.from(message).toString()).toBe(message)
      }),
    )
    expect(presentableMessage('🎉'.repeat(400))).toBe(`${'🎉'.repeat(255)}…`)
  })

  it('keeps a message of exactly 512 characters whole', () => {
    expect(presentableMessage('x'.repeat(512))).toBe('x'.repeat(512))
    expect(presentableMessage('x'.repeat(513))).toBe(`${'x'.repeat(511)}…`)
  })
})

describe('quoted', () => {
  it.each([
    ['gpt-4o', "'gpt-4o'"],
    ["<script>'&", "'script'"],
    ['a\nb', "'a b'"],
    ['x'.repeat(65), `'${'x'.repeat(63)}…'`],
  ])('shows %j harmlessly', (value, shown) => {
    expect(quoted(value)).toBe(shown)
  })
})
