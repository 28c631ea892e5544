import 'reflect-metadata'
import { describe, expect, it } from '@jest/globals'
import { cpuMs } from '../../test/support/cpu-time.js'
import { DtoCheck } from '../core/dto-check.js'
import { TranscriptionRequestDto } from './transcription.dto.js'

const check = new DtoCheck(TranscriptionRequestDto)
const accepts = (temperature: string): boolean => check.accepts({ model: 'whisper-1', temperature })

describe('A temperature in a form', () => {
  it.each(['0', '1', ' 0.7 ', '.5', '1.', '5e-1', '+0.25', '-0', '0.30000000000000004'])('may be %j', (text) => {
    expect(accepts(text)).toBe(true)
  })

  it.each(['', 'warm', '1,5', '-1', '1.5', '0x1', '.', '1e', '0'.repeat(33)])('may not be %j', (text) => {
    expect(accepts(text)).toBe(false)
  })

  it('of thousands of digits is refused at once', () => {
    const startedAtMs = cpuMs()
    expect(accepts(`${'1'.repeat(65_535)}x`)).toBe(false)
    expect(cpuMs() - startedAtMs).toBeLessThan(100)
  })
})
