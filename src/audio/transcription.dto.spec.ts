import 'reflect-metadata'
import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { cpuMs } from '../../test/support/eventually.js'
import { DtoCheck } from '../core/dto.js'
import { isLanguageCode, TranscriptionRequestDto } from './transcription.dto.js'

describe('isLanguageCode', () => {
  it.each(['en', 'de', 'zh', 'sr', 'eng', 'deu', 'yue', 'haw', 'cmn', 'jw', 'jv', 'EN', 'Deu'])(
    'accepts %s',
    (code) => {
      expect(isLanguageCode(code)).toBe(true)
    },
  )

  it.each(['', 'e', 'xx', 'xx-bad', 'en-US', 'english', 'ger', 'qqq', 'en ', ' en', 'e n', '12', 'ｅｎ', '__proto__'])(
    'refuses %j',
    (code) => {
      expect(isLanguageCode(code)).toBe(false)
    },
  )

  it('knows every language of the Whisper models that is named by a code', () => {
    const whisper =
      'en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th ur hr bg lt la mi ml cy sk te fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk sq sw gl mr pa si km sn yo so af oc ka be tg sd gu am yi lo uz fo ht ps tk nn mt sa lb my bo tl mg as tt haw ln ha ba jw su yue'
    expect(whisper.split(' ').filter((code) => !isLanguageCode(code))).toEqual([])
  })

  it('refuses whatever is not two or three letters', () => {
    fc.assert(
      fc.property(
        fc.string().filter((text) => !/^[a-z]{2,3}$/i.test(text)),
        (text) => {
          expect(isLanguageCode(text)).toBe(false)
        },
      ),
    )
  })
})

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
