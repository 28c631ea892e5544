import { describe, expect, it } from '@jest/globals'
import { dropUpstreamLimits, remainingOf, upstreamDuration, writeLimitHeaders } from './limit-errors.js'

const NOTHING_SEEN = { lastSeen: () => undefined }

describe('The headers of a limit', () => {
  it.each([
    [0, '0s'],
    [-5, '0s'],
    [1, '1ms'],
    [250, '250ms'],
    [999, '999ms'],
    [1000, '1s'],
    [1001, '2s'],
    [12_000, '12s'],
    [59_001, '1m0s'],
    [60_000, '1m0s'],
    [61_500, '1m2s'],
  ])('spell %d ms as the upstream does: %s', (milliseconds, spelled) => {
    expect(upstreamDuration(milliseconds)).toBe(spelled)
  })

  it('show all of a limit that nobody has used', () => {
    const headers: Record<string, string> = {}
    writeLimitHeaders(headers, '/v1/audio/speech', { audioSecondsPerMinute: 90, concurrency: 3 }, NOTHING_SEEN)
    expect(headers).toEqual({
      'x-ratelimit-limit-audio-seconds': '90',
      'x-ratelimit-remaining-audio-seconds': '90',
      'x-ratelimit-reset-audio-seconds': '0s',
    })
  })

  it('never show less than nothing', () => {
    const state = { used: 150_000, allowed: 90_000, endsAtMs: performance.now() }
    expect(remainingOf('audioSecondsPerMinute', 90, state)).toBe(0)
    expect(remainingOf('audioSecondsPerMinute', 90, { ...state, used: 10_001 })).toBe(79)
  })

  it.each(['/v1/messages', '/v1/messages/count_tokens'])('are those of the messages family at %s', (path) => {
    const headers: Record<string, string> = {}
    writeLimitHeaders(headers, path, { requestsPerMinute: 7 }, NOTHING_SEEN)
    expect(headers).toMatchObject({
      'anthropic-ratelimit-requests-limit': '7',
      'anthropic-ratelimit-requests-remaining': '7',
    })
    expect(Object.keys(headers)).toHaveLength(3)
  })

  it('are those of everybody else at a path that only begins like theirs', () => {
    const headers: Record<string, string> = {}
    writeLimitHeaders(headers, '/v1/messagesque', { requestsPerMinute: 7 }, NOTHING_SEEN)
    expect(headers).toHaveProperty('x-ratelimit-limit-requests', '7')
  })
})

describe('The figures of an upstream', () => {
  it('are taken out in every dialect, whatever they count, and nothing else is', () => {
    const headers = {
      'x-ratelimit-limit-tokens': '600000',
      'anthropic-ratelimit-output-tokens-reset': '2026-11-20T10:00:05Z',
      'anthropic-priority-input-tokens-remaining': '9000',
      'content-type': 'application/json',
      'retry-after': '2',
      'openai-version': '2020-10-01',
    }
    dropUpstreamLimits(headers)
    expect(headers).toEqual({
      'content-type': 'application/json',
      'retry-after': '2',
      'openai-version': '2020-10-01',
    })
  })
})
