import { describe, expect, it } from '@jest/globals'
import { freeBytes } from './free-bytes.js'

describe('freeBytes', () => {
  it('gives the memory back at once', () => {
    const before = process.memoryUsage().arrayBuffers
    const bytes = Buffer.allocUnsafeSlow(64 * 1024 * 1024)
    expect(process.memoryUsage().arrayBuffers).toBeGreaterThanOrEqual(before + bytes.length)
    freeBytes(bytes)
    expect(bytes).toHaveLength(0)
    expect(process.memoryUsage().arrayBuffers).toBeLessThan(before + 32 * 1024 * 1024)
  })

  it('leaves bytes alone that share their memory', () => {
    const whole = Buffer.allocUnsafeSlow(1000).fill(7)
    freeBytes(whole.subarray(0, 999))
    const pooled = Buffer.from('seven')
    freeBytes(pooled)
    const shared = Buffer.from(new SharedArrayBuffer(10))
    freeBytes(shared)
    freeBytes(Buffer.alloc(0))
    expect(whole.every((byte) => byte === 7)).toBe(true)
    expect(pooled.toString()).toBe('seven')
    expect(shared).toHaveLength(10)
  })
})
