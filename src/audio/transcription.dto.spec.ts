import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { isLanguageCode } from './language-codes.js'

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
