import { describe, expect, it } from '@jest/globals'
import { type AccountFault, accountRefusal } from './account-refusal.js'

const FAULTS: readonly AccountFault[] = ['key', 'access', 'quota', 'busy']

describe('A fault of the account behind a key', () => {
  it.each(FAULTS)("(%s) is the channel's with its own key: no caller hears which it is", (fault) => {
    const error = accountRefusal(fault, false)
    expect(error.details.attempt).toEqual({ phase: 'answered', channelFault: true })
    expect(error.details.code).toBeUndefined()
    expect(error.message).not.toMatch(/key|account|quota|access/)
    expect([error.kind, error.details.retryable]).toEqual(
      fault === 'busy' ? ['rate_limited', undefined] : ['upstream_failed', false],
    )
  })

  it.each([
    ['key', 'unauthorized', undefined],
    ['access', 'forbidden_model', undefined],
    ['quota', 'rate_limited', 'insufficient_quota'],
    ['busy', 'rate_limited', undefined],
  ] as const)(
    '(%s) is said to a caller whose own key was sent, as %s, and not held against the channel',
    (fault, kind, code) => {
      const error = accountRefusal(fault, true)
      expect([error.kind, error.details.code]).toEqual([kind, code])
      expect(error.details.attempt).toEqual({ phase: 'answered' })
      expect(error.message).toMatch(/this API key/i)
    },
  )

  it('names a time to wait where waiting helps, and nowhere else', () => {
    for (const callersKey of [true, false]) {
      expect(accountRefusal('busy', callersKey).details.retryAfterSeconds).toBe(1)
      expect(accountRefusal('busy', callersKey, { retryAfterSeconds: 60 }).details.retryAfterSeconds).toBe(60)
      expect(accountRefusal('quota', callersKey, { retryAfterSeconds: 60 }).details.retryAfterSeconds).toBeUndefined()
    }
  })

  it('keeps its cause for the log, and how far the attempt went', () => {
    const cause = new Error('1004: login fail')
    const { details } = accountRefusal('key', false, { cause, phase: 'unsent' })
    expect(details).toEqual({ cause, attempt: { phase: 'unsent', channelFault: true }, retryable: false })
  })
})
