import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import iconv from 'iconv-lite'
import { cpuMs } from '../../../../test/support/eventually.js'
import { decodeText } from './charset.js'

const bytesOf = (...bytes: readonly number[]): Uint8Array => Uint8Array.from(bytes)
const encoded = (text: string, charset: string): Uint8Array => new Uint8Array(iconv.encode(text, charset))
const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)
const typed = (charset: string): string => `text/html; charset=${charset}`

const CHINESE = '你好，世界。这是一个测试文件，用来检查字符集。'
const RUSSIAN = 'Привет, как дела? Это простой текст.'

describe('a byte order mark', () => {
  it.each([
    ['UTF-8', [0xef, 0xbb, 0xbf], 'utf-8'],
    ['UTF-16 little-endian', [0xff, 0xfe], 'utf-16le'],
    ['UTF-16 big-endian', [0xfe, 0xff], 'utf-16be'],
    ['UTF-32 little-endian', [0xff, 0xfe, 0, 0], 'utf-32le'],
    ['UTF-32 big-endian', [0, 0, 0xfe, 0xff], 'utf-32be'],
  ])('of %s wins over any claim and is taken off', (_name, mark, charset) => {
    const bytes = bytesOf(...mark, ...encoded('Grüße, 世界', charset))
    expect(decodeText(bytes, typed('koi8-r'))).toBe('Grüße, 世界')
  })
})

describe('a claim in the content type', () => {
  it.each([
    ['utf-8', 'utf-8', 'Grüße'],
    ['UTF8', 'utf-8', 'Grüße'],
    ['"utf-8"', 'utf-8', 'Grüße'],
    ['windows-1251', 'windows-1251', RUSSIAN],
    ['KOI8-R', 'koi8-r', RUSSIAN],
    ['gb2312', 'gb18030', '镕基 朱㐀'],
    ['gbk', 'gb18030', '镕基 㐀'],
    ['x-gbk', 'gb18030', '㐀'],
    ['cp936', 'gb18030', '你好'],
    ['iso-8859-1', 'windows-1252', 'it’s 5 € – “fine”'],
    ['latin1', 'windows-1252', 'it’s'],
    ['us-ascii', 'windows-1252', 'it’s'],
    ['windows-1252', 'windows-1252', 'it’s'],
    ['iso-8859-9', 'windows-1254', 'Türkçe ğ ş'],
    ['tis-620', 'windows-874', 'สวัสดี'],
    ['shift_jis', 'shift_jis', '①髙 こんにちは'],
    ['windows-31j', 'shift_jis', '①'],
    ['cp932', 'shift_jis', '①'],
    ['euc-jp', 'euc-jp', 'こんにちは'],
    ['euc-kr', 'cp949', '똠방각하 한국어'],
    ['ks_c_5601-1987', 'cp949', '똠'],
    ['big5', 'big5-hkscs', '中文 㗎'],
    ['big5-hkscs', 'big5-hkscs', '㗎'],
    ['cp437', 'cp437', '░▒▓'],
    ['macintosh', 'macintosh', 'é'],
    ['iso-8859-16', 'iso-8859-16', 'ș'],
    ['latin9', 'iso-8859-15', '€'],
    ['utf-16le', 'utf-16le', 'plain'],
    ['utf-16be', 'utf-16be', 'plain'],
    ['utf-16', 'utf-16be', 'plain'],
  ])('%s is decoded as %s', (label, charset, text) => {
    expect(decodeText(encoded(text, charset), `text/plain;charset=${label}`)).toBe(text)
  })

  it('is found among other parameters, in any case, with blanks', () => {
    const bytes = encoded(RUSSIAN, 'koi8-r')
    expect(decodeText(bytes, 'Text/Plain; format=flowed; Charset = "KOI8-R"; x=y')).toBe(RUSSIAN)
  })

  it('wins over the declaration in the page', () => {
    const page = `<meta charset="koi8-r"><p>${RUSSIAN}`
    expect(decodeText(encoded(page, 'windows-1251'), typed('windows-1251'), { htmlMeta: true })).toBe(page)
  })
})

describe('a claim that the bytes refute', () => {
  it.each(['utf-8', 'utf-16', 'utf-16le'])('of %s over Chinese in GBK is not followed', (claim) => {
    const text = claim === 'utf-8' ? CHINESE : 'plain ASCII'
    expect(decodeText(encoded(text, 'gb18030'), typed(claim))).toBe(text)
  })

  it('of latin-1 over UTF-8 is not followed', () => {
    expect(decodeText(utf8('naïve café'), typed('iso-8859-1'))).toBe('naïve café')
  })

  it('of GBK over a page in UTF-8 is not followed', () => {
    expect(decodeText(utf8(CHINESE), typed('gb2312'))).toBe(CHINESE)
  })

  it('of UTF-8 stands when only some bytes are damaged', () => {
    const bytes = bytesOf(...utf8('Grüße aus Köln, '), 0xe9, ...utf8(' schöne Wünsche'))
    expect(decodeText(bytes, typed('utf-8'))).toBe('Grüße aus Köln, \ufffd schöne Wünsche')
  })

  it.each(['no-such-charset', 'utf-7', 'base64', 'hex', 'replacement', '../../etc/passwd', 'constructor', '__proto__'])(
    'is ignored when it names %s',
    (label) => {
      expect(decodeText(utf8('Grüße'), typed(label))).toBe('Grüße')
    },
  )
})

describe('a declaration in the document', () => {
  const declared = (declaration: string): string =>
    decodeText(encoded(`${declaration}Ð`, 'latin1'), '', { htmlMeta: true })
  const asRussian = 'п'

  it.each([
    '<meta charset="koi8-r">',
    "<META CHARSET='KOI8-R'>",
    '<meta charset=koi8-r/>',
    '<meta http-equiv="Content-Type" content="text/html; charset=koi8-r">',
    '<meta content="text/html;charset = koi8-r" http-equiv=content-type>',
    '<html><head><!-- <meta charset="big5"> --><meta name="x"><meta charset="koi8-r">',
    '<meta charset="no-such"><meta charset="koi8-r">',
    '<?xml version="1.0" encoding="koi8-r"?>',
  ])('%s is followed', (declaration) => {
    expect(declared(declaration)).toBe(`${declaration}${asRussian}`)
  })

  it('beyond the first 1,024 bytes is not looked for', () => {
    const late = `${' '.repeat(1024)}<meta charset="koi8-r">`
    expect(declared(late)).not.toContain(asRussian)
  })

  it('in a meta tag is left alone unless the document is HTML', () => {
    expect(decodeText(encoded('<meta charset="koi8-r">Ð', 'latin1'), '')).not.toContain(asRussian)
  })

  it('of UTF-16 means UTF-8, for it could not be read otherwise', () => {
    const page = '<meta charset="utf-16"><p>Grüße'
    expect(decodeText(utf8(page), '', { htmlMeta: true })).toBe(page)
  })

  it('of x-user-defined means windows-1252', () => {
    const page = '<meta charset="x-user-defined">it’s'
    expect(decodeText(encoded(page, 'windows-1252'), '', { htmlMeta: true })).toBe(page)
  })
})

describe('bytes of an undeclared charset', () => {
  it.each([
    ['utf-8', 'Grüße, 世界'],
    ['utf-16le', 'Grüße und so weiter'],
    ['utf-16be', 'Grüße und so weiter'],
    ['windows-1252', 'Müller'],
    ['windows-1252', 'Café crème, naïve façade – “quoted”'],
    ['windows-1251', RUSSIAN],
    ['koi8-r', RUSSIAN],
    ['gb18030', CHINESE],
    ['gb18030', '价格,数量\n苹果,3\n香蕉,5'],
    ['big5', '你好，世界。這是一個測試檔案，用來檢查字元集。'],
    ['shift_jis', 'こんにちは世界。これは文字コードのテストです。'],
    ['euc-jp', 'こんにちは世界。これは文字コードのテストです。'],
    ['cp949', '안녕하세요. 이것은 문자 집합 시험입니다.'],
    ['windows-1253', 'Γειά σου Κόσμε, αυτό είναι ένα κείμενο'],
  ])('in %s are recognized: %s', (charset, text) => {
    expect(decodeText(encoded(text, charset), '')).toBe(text)
  })

  it('with the escapes of ISO 2022 are Japanese', () => {
    const bytes = bytesOf(0x1b, 0x24, 0x42, 0x24, 0x22, 0x1b, 0x28, 0x42)
    expect(decodeText(bytes, '')).toBe('あ')
  })

  it('in a page are judged by its words, not by its markup', () => {
    const page = `<div class="the news of the day and the weather">${RUSSIAN}</div>`.repeat(30)
    expect(decodeText(encoded(page, 'windows-1251'), '', { htmlMeta: true })).toBe(page)
  })
})

describe('any bytes and any claim', () => {
  it('give a text', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.string(), fc.boolean(), (bytes, claim, htmlMeta) => {
        expect(typeof decodeText(bytes, `text/html; charset=${claim}`, { htmlMeta })).toBe('string')
      }),
    )
  })

  it('of valid UTF-8 give the text that was written, whatever single-byte charset is claimed', () => {
    const claims = fc.constantFrom('', 'utf-8', 'iso-8859-1', 'windows-1251', 'koi8-r', 'no-such')
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), claims, (text, claim) => {
        const withWord = `ä${text}`
        expect(decodeText(utf8(withWord), `text/plain; charset=${claim}`)).toBe(withWord)
      }),
    )
  })

  it('take time in proportion to their length', () => {
    const half = '\xe9<a \xc3'.repeat(1_000_000)
    const startedAtMs = cpuMs()
    decodeText(encoded(half, 'latin1'), typed('utf-8'), { htmlMeta: true })
    expect(cpuMs() - startedAtMs).toBeLessThan(5000)
  })
})
