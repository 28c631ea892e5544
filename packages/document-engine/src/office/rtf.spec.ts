import { describe, expect, it } from '@jest/globals'
import { EngineFault, type EngineOutput } from '../model/document.js'
import { readRtf } from './rtf.js'

const HEAD =
  '{\\rtf1\\ansi\\ansicpg1252\\deff0{\\fonttbl{\\f0\\fswiss\\fcharset0 Arial;}{\\f1\\fmodern\\fcharset0 Courier New;}{\\f2\\fnil\\fcharset204 Arial Cyr;}{\\f3\\fnil\\fcharset128 MS Mincho;}}' +
  '{\\colortbl;\\red0\\green0\\blue0;}{\\stylesheet{\\s0 Normal;}{\\s1\\b heading 1;}{\\*\\cs10 Default;}}{\\*\\generator Writer;}'
const read = (body: string, head = HEAD): EngineOutput =>
  readRtf(
    { bytes: Buffer.from(`${head}${body}}`, 'latin1'), contentType: '', name: '', baseUrl: '' },
    { pages: 1, decodedBytes: 1_000_000 },
  )
const markdownOf = (body: string): string => read(body).markdown

describe('a rich text', () => {
  it.each([
    ['paragraphs and line breaks', 'One\\par Two\\line three\\par', 'One\n\nTwo\\\nthree\n'],
    ['emphasis', '{\\b bold} and {\\i italic}, \\strike gone\\strike0 .\\par', '**bold** and *italic*, ~~gone~~.\n'],
    ['headings by the names of styles', '\\pard\\s1{\\b Tea}\\par\\pard\\s0 x\\par', '# Tea\n\nx\n'],
    ['headings by outline', '\\pard\\outlinelevel1 Tea\\par\\pard x\\par', '## Tea\n\nx\n'],
    ['letters of its code page', "Gr\\'fc\\'dfe \\'80\\par", 'Grüße €\n'],
    ['letters of its fonts', "{\\f2 \\'cf\\'f0} {\\f3 \\'93\\'fa\\'96\\'7b}\\par", 'Пр 日本\n'],
    ['Unicode, without the characters for old readers', '\\u8364? \\uc2\\u-10179 xx\\u-8704 xx!\\par', '€ 😀!\n'],
    ['marks that are words', '\\ldblquote a\\rdblquote\\~b\\emdash c \\{x\\}\\par', '“a” b—c {x}\n'],
    [
      'links, but to no script',
      '{\\field{\\*\\fldinst HYPERLINK "https://example.org/"}{\\fldrslt web}} {\\field{\\*\\fldinst HYPERLINK "javascript:x"}{\\fldrslt bad}}\\par',
      '[web](https://example.org/) bad\n',
    ],
    ['notes', 'One{\\super{\\footnote\\pard A note.\\par}} two\\par', 'One[^1] two\n\n[^1]: A note.\n'],
    [
      'code by its font',
      'Call {\\f1 run()}.\\par\\pard\\f1 if x:\\par   y\\par\\f0 end\\par',
      'Call `run()`.\n\n```\nif x:\n  y\n```\n\nend\n',
    ],
    ['what is seen', '{\\v hidden}{\\deleted gone}{\\*\\unknown x}{\\header h}{\\*\\annotation c}a\\par', 'a\n'],
  ])('has %s', (_name, body, expected) => {
    expect(markdownOf(body)).toBe(expected)
  })

  it('has lists with their levels and numbers', () => {
    const item = (marker: string, level: number, text: string): string =>
      `{\\listtext\\pard ${marker}\\tab}\\pard\\ls1\\ilvl${level} ${text}\\par`
    expect(
      markdownOf(
        `${item("\\'b7", 0, 'one')}${item("\\'b7", 1, 'inner')}${item("\\'b7", 0, 'two')}\\pard x\\par${item('3.', 0, 'three')}${item('4.', 0, 'four')}`,
      ),
    ).toBe('- one\n  - inner\n- two\n\nx\n\n3. three\n4. four\n')
  })

  it('has lists whose bullets and numbers are typed, by their indents', () => {
    const item = (marker: string, indent: number, text: string): string =>
      `{\\pard \\li${indent}\\fi-360 ${marker}\\tx360\\tab ${text}\\par}`
    expect(
      markdownOf(
        `${item('\\bullet ', 360, 'one')}${item('\\endash ', 720, 'inner')}${item('\\bullet ', 360, 'two')}{\\pard x\\par}${item('3.', 360, '\\u9746? three')}`,
      ),
    ).toBe('- one\n  - inner\n- two\n\nx\n\n3. [x] three\n')
  })

  it('has tables', () => {
    const row = (...cells: string[]): string =>
      `\\trowd\\cellx1000\\cellx2000\\pard\\intbl ${cells.map((cell) => `${cell}\\cell`).join(' ')}\\row`
    expect(markdownOf(`${row('a', 'b')}${row('c\\par d', '{\\b e}')}\\pard end\\par`)).toBe(
      '| a | b |\n| --- | --- |\n| c<br>d | **e** |\n\nend\n',
    )
  })

  it('has the title of its information, and says what is left out', () => {
    const { metadata } = read(
      'x{\\pict\\pngblip 89504e47}{\\object\\objemb{\\*\\objdata 0105}{\\result y}}{\\*\\shppict{\\pict 00}}{\\nonshppict{\\pict 00}}\\par',
      `${HEAD}{\\info{\\title Tea \\'fc}{\\subject Cups}{\\keywords a, b}}`,
    )
    expect(metadata).toMatchObject({
      title: 'Tea ü',
      description: 'Cups',
      keywords: 'a, b',
      warnings: [
        { code: 'pictures_dropped', message: '2 pictures have no description.' },
        { code: 'attachments_unread', message: 'One embedded object is not read.' },
      ],
    })
  })

  it('leaves out binary data, however it looks', () => {
    expect(markdownOf('a{\\pict\\bin5 }}{\\b }b\\par')).toBe('ab\n')
  })
})

describe('a hostile rich text', () => {
  it('that is nested without end is refused', () => {
    expect(() => read('{\\b '.repeat(100_000))).toThrow(EngineFault)
  })

  it.each(['\\', '{', '}', "\\'", '\\u1', '{\\field', '{\\footnote ', '\\cell', '\\row', '{\\listtext 1.}'])(
    'of nothing but %j is read',
    (piece) => {
      expect(read(piece.repeat(5000)).kind).toBe('rtf')
    },
  )
})
