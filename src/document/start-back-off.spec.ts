import { describe, expect, it } from '@jest/globals'
import { StartBackOff } from './start-back-off.js'

describe('Processes that die while they start', () => {
  it('rest longer each time, up to half a minute, and as new after one that served', () => {
    const backOff = new StartBackOff()
    expect(backOff.restSeconds(0)).toBe(0)
    const rests = Array.from({ length: 9 }, () => {
      backOff.failed(1000)
      return backOff.restSeconds(1000)
    })
    expect(rests).toEqual([1, 1, 1, 2, 4, 8, 16, 30, 30])
    backOff.succeeded()
    expect(backOff.restSeconds(1000)).toBe(0)
  })

  it('may start again when the rest is over', () => {
    const backOff = new StartBackOff()
    backOff.failed(1000)
    expect([backOff.restSeconds(1249), backOff.restSeconds(1250)]).toEqual([1, 0])
  })
})
