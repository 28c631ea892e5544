import { describe, expect, it } from '@jest/globals'
import { reportedUsage } from './usage.js'

describe('reportedUsage', () => {
  it('keeps the numbers of an upstream as it nests them, explicit zeros too, and nothing else', () => {
    const usage = {
      prompt_tokens: 11,
      total_tokens: 0,
      details: { cached_tokens: 0, audio: 2.5 },
      type: 'tokens',
      x: null,
    }
    expect(reportedUsage(usage)).toEqual({
      units: { prompt_tokens: 11, total_tokens: 0, details: { cached_tokens: 0, audio: 2.5 } },
      estimated: false,
    })
  })

  it.each([undefined, null, 'tokens', 3, {}, { type: 'tokens' }])('is undefined for %j', (usage) => {
    expect(reportedUsage(usage)).toBeUndefined()
  })
})
