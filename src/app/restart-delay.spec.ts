import { describe, expect, it } from '@jest/globals'
import { RestartDelay } from './restart-delay.js'

describe('the delay of a restart', () => {
  it('doubles with every worker that dies young, up to half a minute', () => {
    const delay = new RestartDelay()
    const delays = Array.from({ length: 11 }, () => delay.after(59_999))
    expect(delays).toEqual([100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000])
  })

  it('is short again after a worker that had settled', () => {
    const delay = new RestartDelay()
    delay.after(10)
    delay.after(10)
    expect([delay.after(60_000), delay.after(10), delay.after(10)]).toEqual([100, 100, 200])
  })
})
