import { describe, expect, it } from '@jest/globals'
import { parseConfig } from '../config/load-config.js'
import { readProcessMemory } from './process-memory.js'
import { shareOfAdmission } from './worker-share.js'

const config = (server: string, admission = '') => parseConfig(`{server: {${server}}, admission: {${admission}}}`, {})

describe('the share of one worker', () => {
  it('is all of it where there is one', () => {
    const whole = config('workers: 1', 'bytesInFlight: 100000000, memoryBytes: 1000000000')
    expect(shareOfAdmission(whole)).toEqual({ ...whole.admission, documentsBytes: 2 * 805_306_368 })
  })

  it('is its part of the memory, and of nothing else', () => {
    const whole = config('workers: 4', 'bytesInFlight: 100000001, memoryBytes: 1000000000')
    expect(shareOfAdmission(whole)).toEqual({
      ...whole.admission,
      bytesInFlight: 25000000,
      memoryBytes: 250000000,
      documentsBytes: 2 * 805_306_368,
    })
  })

  it('leaves to the processes that read documents what they may have: each worker has its own', () => {
    const documents = (workers: number): number =>
      shareOfAdmission(
        parseConfig(`{server: {workers: ${workers}}, documents: {processes: 3, memoryBytes: 200000000}}`, {}),
      ).documentsBytes
    expect([1, 4].map(documents)).toEqual([600000000, 600000000])
  })

  it('is its part of what the machine or its container has', () => {
    expect(shareOfAdmission(config('workers: 4'))).not.toHaveProperty('memoryBytes')
    const { availableBytes } = readProcessMemory(1)
    expect(readProcessMemory(4).availableBytes).toBe(availableBytes / 4)
  })
})
