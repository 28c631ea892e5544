import { describe, expect, it } from '@jest/globals'
import { parseConfig } from '../../config/config-loader.js'
import { readProcessMemory } from './process-memory.js'
import { shareOfAdmission } from './worker-share.js'

const config = (server: string, admission = '') => parseConfig(`{server: {${server}}, admission: {${admission}}}`, {})

describe('the share of one worker', () => {
  it('is all of it where there is one', () => {
    const whole = config('workers: 1', 'bytesInFlight: 100000000, memoryBytes: 1000000000')
    expect(shareOfAdmission(whole)).toEqual(whole.admission)
  })

  it('is its part of the memory, and of nothing else', () => {
    const whole = config('workers: 4', 'bytesInFlight: 100000001, memoryBytes: 1000000000')
    expect(shareOfAdmission(whole)).toEqual({
      ...whole.admission,
      bytesInFlight: 25000000,
      memoryBytes: 250000000,
    })
  })

  it('is its part of what the machine or its container has', () => {
    expect(shareOfAdmission(config('workers: 4'))).not.toHaveProperty('memoryBytes')
    const { availableBytes } = readProcessMemory(1)
    expect(readProcessMemory(4).availableBytes).toBe(availableBytes / 4)
  })
})
