import { describe, expect, it } from '@jest/globals'
import { textAt } from '../../../../test/support/pdf-files.js'
import { onePage, textsOf } from '../../../../test/support/read-pdf-pages.js'

const LONG = 'A line of text that is long enough to be the body of the page.'

describe('text that is not drawn plainly', () => {
  const invisible = (text: string, y: number) => `q BT 3 Tr /F1 12 Tf 100 ${y} Td (${text}) Tj ET Q `

  it('is left out when invisible beside visible text', async () => {
    const page = await onePage(textAt(100, 700, LONG) + invisible('Hidden words', 600))
    expect(textsOf(page)).toEqual([LONG])
  })

  it('is kept when it is what a scanner read', async () => {
    const page = await onePage(invisible(LONG, 700) + invisible(LONG, 680) + textAt(100, 20, 'Scanned by us'))
    expect(textsOf(page)).toEqual([LONG, LONG, 'Scanned by us'])
  })

  it('is left out when its layer is switched off', async () => {
    const layers = new Map([
      [100, { text: '<< /Type /OCG /Name (On) >>' }],
      [101, { text: '<< /Type /OCG /Name (Off) >>' }],
    ])
    const font = '/Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >>'
    const page = await onePage(
      `/OC /On BDC ${textAt(100, 700, 'Shown')} EMC /OC /Off BDC ${textAt(100, 680, 'Switched off')} EMC`,
      {
        objects: layers,
        resources: `${font} /Properties << /On 100 0 R /Off 101 0 R >>`,
        catalogEntries: '/OCProperties << /OCGs [100 0 R 101 0 R] /D << /OFF [101 0 R] >> >>',
      },
    )
    expect(textsOf(page)).toEqual(['Shown'])
  })

  it('counts once, as bold, when it is drawn again a little beside', async () => {
    const page = await onePage(textAt(100, 700, 'Heading') + textAt(100.4, 700, 'Heading') + textAt(100, 680, 'Body'))
    expect(page.runs.map(({ text, isBold }) => [text, isBold])).toEqual([
      ['Heading', true],
      ['Body', false],
    ])
  })

  it('is bold when it is stroked as well as filled', async () => {
    const page = await onePage(`${textAt(100, 700, 'Plain')} q 2 Tr ${textAt(100, 680, 'Heavy')} Q`)
    expect(page.runs.map(({ text, isBold }) => [text, isBold])).toEqual([
      ['Plain', false],
      ['Heavy', true],
    ])
  })
})

describe('fonts and characters', () => {
  const fonts = (...fonts: string[]) =>
    `/Font << ${fonts.map((font, index) => `/F${index + 1} << /Type /Font ${font} >>`).join(' ')} >>`

  it('tells bold, italic and fixed pitch of the standard fonts', async () => {
    const names = ['Times-Roman', 'Times-Bold', 'Times-Italic', 'Courier', 'Helvetica-BoldOblique']
    const content = names.map((_, index) => textAt(100, 700 - 20 * index, 'limit', 12, `F${index + 1}`)).join('')
    const page = await onePage(content, {
      resources: fonts(...names.map((name) => `/Subtype /Type1 /BaseFont /${name}`)),
    })
    expect(page.runs.map((run) => [run.font, run.isBold, run.isItalic, run.isFixedPitch])).toEqual([
      ['Times-Roman', false, false, false],
      ['Times-Bold', true, false, false],
      ['Times-Italic', false, true, false],
      ['Courier', false, false, true],
      ['Helvetica-BoldOblique', true, true, false],
    ])
  })

  it('reads CJK fonts that are not embedded by their predefined character maps', async () => {
    const cjk = (map: string, ordering: string) =>
      `/Subtype /Type0 /BaseFont /Song /Encoding /${map} /DescendantFonts [<< /Type /Font /Subtype /CIDFontType0 /BaseFont /Song
       /CIDSystemInfo << /Registry (Adobe) /Ordering (${ordering}) /Supplement 2 >> /DW 1000
       /FontDescriptor << /Type /FontDescriptor /FontName /Song /Flags 4 /FontBBox [0 -200 1000 900] /ItalicAngle 0 /Ascent 800 /Descent -200 /CapHeight 700 /StemV 80 >> >>]`
    const line = (y: number, font: string, hex: string) => `BT /${font} 12 Tf 100 ${y} Td <${hex}> Tj ET `
    const page = await onePage(
      line(700, 'F1', '4E2D6587') +
        line(680, 'F2', '93FA967B8CEA') +
        line(660, 'F3', 'D6D0B9FA') +
        line(640, 'F4', 'D55CAE00'),
      {
        resources: fonts(
          cjk('UniGB-UCS2-H', 'GB1'),
          cjk('90ms-RKSJ-H', 'Japan1'),
          cjk('GBK-EUC-H', 'GB1'),
          cjk('UniKS-UCS2-H', 'Korea1'),
        ),
      },
    )
    expect(textsOf(page)).toEqual(['中文', '日本語', '中国', '한글'])
    expect(page.runs.map((run) => run.width)).toEqual([24, 36, 24, 24])
  })

  it('turns vertical writing into lines, the rightmost column first', async () => {
    const vertical = `/Subtype /Type0 /BaseFont /Ming /Encoding /UniJIS-UCS2-V /DescendantFonts [<< /Type /Font
      /Subtype /CIDFontType0 /BaseFont /Ming /CIDSystemInfo << /Registry (Adobe) /Ordering (Japan1) /Supplement 2 >>
      /FontDescriptor << /Type /FontDescriptor /FontName /Ming /Flags 4 /FontBBox [0 -200 1000 900] /ItalicAngle 0 /Ascent 800 /Descent -200 /CapHeight 700 /StemV 80 >> >>]`
    const column = (x: number, hex: string) => `BT /F1 20 Tf ${x} 700 Td <${hex}> Tj ET `
    const page = await onePage(column(500, '65E5672C8A9E') + column(470, '6587722B'), { resources: fonts(vertical) })
    expect([page.width, page.height]).toEqual([800, 600])
    expect(page.runs.map(({ text, x, width }) => [text, x, width])).toEqual([
      ['日本語', 100, 60],
      ['文爫', 100, 40],
    ])
    const [first, second] = page.runs
    expect(Number(second?.y) - Number(first?.y)).toBeCloseTo(30)
  })

  it('follows the map of the file, takes ligatures apart and keeps soft hyphens', async () => {
    const map = `/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <00> <FF> endcodespacerange
      3 beginbfchar <61> <FB01> <62> <006E> <2D> <00AD> endbfchar endcmap`
    const page = await onePage(`${textAt(100, 700, 'aba-')}${textAt(100, 680, 'b')}`, {
      objects: new Map([[100, { text: '<< >>', stream: map }]]),
      resources: fonts('/Subtype /Type1 /BaseFont /Helvetica /ToUnicode 100 0 R'),
    })
    expect(textsOf(page)).toEqual(['finfi\u00AD', 'n'])
  })
})
