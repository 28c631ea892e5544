import { describe, expect, it } from '@jest/globals'
import { onePage, placeOf, textAt, textsOf } from '../../../../test/support/pdf-files.js'
import { ObservedFont } from './fonts.js'
import type { PdfPage } from './layout/layout-model.js'

const LONG = 'A line of text that is long enough to be the body of the page.'

describe('where text stands', () => {
  it('counts from the upper left corner of the page, to the baseline', async () => {
    const page = await onePage(textAt(100, 700, 'Hello'))
    expect([page.number, page.width, page.height]).toEqual([1, 600, 800])
    expect(page.runs).toHaveLength(1)
    expect(page.runs[0]).toMatchObject({ text: 'Hello', fontSize: 12, font: 'Helvetica', isFixedPitch: false })
    expect(placeOf(page.runs[0])).toEqual([100, 100])
    expect(page.runs[0]?.width).toBeCloseTo(27.3, 0)
  })

  it('takes off the offset of a crop box', async () => {
    const content = textAt(150, 700, 'Hello')
    const page = await onePage({ content, entries: '/CropBox [50 100 550 750]' })
    expect([page.width, page.height]).toEqual([500, 650])
    expect(placeOf(page.runs[0])).toEqual([100, 50])
  })

  it('leaves out what stands outside the page', async () => {
    const page = await onePage(textAt(100, 700, 'Inside') + textAt(100, 900, 'Above') + textAt(-300, 700, 'Left'))
    expect(textsOf(page)).toEqual(['Inside'])
  })

  it('takes off the rotation of the page', async () => {
    const content = 'BT /F1 12 Tf 0 1 -1 0 100 700 Tm (Sideways) Tj ET'
    const page = await onePage({ content, entries: '/Rotate 90' })
    expect([page.width, page.height]).toEqual([800, 600])
    expect(page.runs[0]).toMatchObject({ text: 'Sideways', fontSize: 12 })
    expect(placeOf(page.runs[0])).toEqual([700, 100])
  })

  it('turns a page whose text runs upwards', async () => {
    const page = await onePage(`BT /F1 12 Tf 0 1 -1 0 100 200 Tm (${LONG}) Tj ET`)
    expect([page.width, page.height]).toEqual([800, 600])
    expect(placeOf(page.runs[0])).toEqual([200, 100])
  })

  it('leaves a stamp in the margin and a tilted watermark out', async () => {
    const stamp = 'BT /F1 20 Tf 0 1 -1 0 30 200 Tm (arXiv stamp) Tj ET '
    const watermark = 'BT /F1 60 Tf 0.7 0.7 -0.7 0.7 100 200 Tm (DRAFT) Tj ET '
    const page = await onePage(stamp + watermark + textAt(100, 700, LONG))
    expect(textsOf(page)).toEqual([LONG])
  })

  it('keeps a large text across the page below the rest', async () => {
    const lines = (count: number, operator: (index: number) => string) =>
      Array.from({ length: count }, (_, index) => operator(index)).join('')
    const upright = lines(12, (index) => textAt(100, 700 - 14 * index, LONG))
    const across = lines(8, (index) => `BT /F1 12 Tf 0 1 -1 0 ${300 + 14 * index} 100 Tm (${LONG}) Tj ET `)
    const page = await onePage(upright + across)
    expect(page.runs).toHaveLength(20)
    expect(page.height).toBe(800 + 600)
    expect(page.runs.slice(12).every((run) => run.y > 800)).toBe(true)
  })

  it('applies the matrices of the page and of its forms', async () => {
    const content = 'q 1 0 0 1 50 0 cm /X1 Do Q'
    const objects = new Map([
      [
        100,
        {
          text: '<< /Type /XObject /Subtype /Form /BBox [0 0 600 800] /Matrix [2 0 0 2 0 0] >>',
          stream: textAt(20, 300, 'In a form'),
        },
      ],
    ])
    const resources =
      '/Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> /XObject << /X1 100 0 R >>'
    const page = await onePage(content, { objects, resources })
    expect(page.runs[0]).toMatchObject({ text: 'In a form', fontSize: 24 })
    expect(placeOf(page.runs[0])).toEqual([90, 200])
  })
})

describe('lines of a page', () => {
  const rounded = (page: PdfPage) =>
    page.rules.map(({ x1, y1, x2, y2 }) => [x1, y1, x2, y2].map((value) => Math.round(value)))

  it('are the straight strokes and the thin filled boxes, under the matrix in force', async () => {
    const stroke = '100 700 m 300 700 l S '
    const box = 'q 2 0 0 2 0 0 cm 50 300 100 0.5 re f Q '
    const column = '400 500 0.7 100 re f '
    const page = await onePage(`${stroke}${box}${column}`)
    expect(rounded(page)).toEqual([
      [100, 100, 300, 100],
      [100, 200, 300, 200],
      [400, 200, 400, 300],
    ])
  })

  it('are joined from their dashes and from cell to cell', async () => {
    const dashes = Array.from({ length: 20 }, (_, index) => `${100 + 5 * index} 700 m ${103 + 5 * index} 700 l S `)
    const page = await onePage(dashes.join(''))
    expect(rounded(page)).toEqual([[100, 100, 198, 100]])
  })

  it('do not come from slanted strokes, areas, clips, curves or dots', async () => {
    const page = await onePage(
      '100 700 m 300 500 l S 100 100 200 200 re f 100 400 200 0.5 re W n 100 50 m 200 50 200 60 300 50 c S 10 10 1 1 re f',
    )
    expect(page.rules).toEqual([])
  })

  it('turn with the page', async () => {
    const text = `BT /F1 12 Tf 0 1 -1 0 100 200 Tm (${LONG}) Tj ET `
    const page = await onePage(`${text} 110 200 m 110 500 l S`)
    expect(rounded(page)).toEqual([[200, 110, 500, 110]])
  })
})

describe('annotations', () => {
  it('give the places of links to the web and of mail, line by line', async () => {
    const link = (uri: string, entries = '') =>
      `<< /Type /Annot /Subtype /Link /Rect [100 690 200 710] /A << /S /URI /URI (${uri}) >> ${entries} >> `
    const twoLines = '/QuadPoints [100 710 150 710 100 700 150 700 110 695 140 695 110 690 140 690]'
    const page = await onePage({
      content: textAt(100, 700, 'Links'),
      entries: `/Annots [
        ${link('https://example.org/a?b=1')} ${link('mailto:me@example.org')}
        ${link('javascript:alert(1)')} ${link('file:///etc/passwd')} ${link('http://two.example/', twoLines)}]`,
    })
    expect(page.links.map(({ url }) => url)).toEqual([
      'https://example.org/a?b=1',
      'mailto:me@example.org',
      'http://two.example/',
      'http://two.example/',
    ])
    expect(page.links[0]).toMatchObject({ x: 100, y: 90, width: 100, height: 20 })
    expect(page.links[2]).toMatchObject({ x: 100, y: 90, width: 50, height: 10 })
  })

  it('give what was filled into a form, but no passwords', async () => {
    const field = (entries: string) => `<< /Type /Annot /Subtype /Widget /FT /Tx /F 4 /DA (/F1 10 Tf) ${entries} >>`
    const page = await onePage(
      {
        content: textAt(100, 700, 'Name:'),
        entries: `/Annots [${field('/T (name) /V (Ada Lovelace) /Rect [150 695 350 711]')} ${field('/T (secret) /Ff 8192 /V (hunter2) /Rect [150 600 350 611]')}]`,
      },
      { catalogEntries: '/AcroForm << /Fields [] /DA (/F1 10 Tf) >>' },
    )
    expect(textsOf(page)).toEqual(['Name:', 'Ada Lovelace'])
    expect(page.runs[1]?.y).toBeCloseTo(100, -1)
  })
})

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

const named = (name: string) => new ObservedFont({ name, id: 'font 1', claimsFixedPitch: false })

function withWidths(widths: Record<string, number>, claimsFixedPitch = false): ObservedFont {
  const font = new ObservedFont({ name: '', id: 'font 1', claimsFixedPitch })
  for (const [glyph, width] of Object.entries(widths)) font.observe(glyph, width)
  return font
}

describe('ObservedFont', () => {
  it.each([
    ['ABCDEF+Arial-BoldMT', true, false],
    ['TimesNewRomanPS-BoldItalicMT', true, true],
    ['NimbusRomNo9L-Medi', true, false],
    ['NimbusRomNo9L-MediItal', true, true],
    ['NimbusRomNo9L-ReguItal', false, true],
    ['QWERTZ+CMBX12', true, false],
    ['CMTI10', false, true],
    ['SFBX1000', true, false],
    ['SourceSansPro-Semibold', true, false],
    ['FrutigerLTStd-Black', true, false],
    ['MinionPro-It', false, true],
    ['Roboto-Medium', false, false],
    ['CMR10', false, false],
    ['CMMI10', false, false],
    ['Italica', false, true],
    ['BlackletterITC-Regular', false, false],
  ])('knows the weight and slope of %s', (name, isBold, isItalic) => {
    expect(named(name).traits).toMatchObject({ isBold, isItalic })
  })

  it('takes the mark of the subset off its name, and its number where it has no name', () => {
    expect(named('ABCDEF+Arial').traits.name).toBe('Arial')
    expect(named('').traits.name).toBe('font 1')
  })

  it('is of fixed pitch when letters of different shape are equally wide', () => {
    expect(withWidths({ i: 600, l: 600, m: 600, W: 600 }).isFixedPitch).toBe(true)
    expect(withWidths({ a: 556, b: 556, d: 556, e: 556, n: 556 }).isFixedPitch).toBe(false)
  })

  it('is not of fixed pitch when letters differ, whatever its file claims', () => {
    expect(withWidths({ i: 222, l: 222, m: 833, w: 722 }, true).isFixedPitch).toBe(false)
  })

  it('goes by name and claim when it has hardly any letters, but not for CJK or symbols', () => {
    expect(withWidths({ a: 500, b: 500 }, true).isFixedPitch).toBe(true)
    expect(withWidths({ '∗': 500 }, true).isFixedPitch).toBe(false)
    expect(withWidths({ a: 500, 中: 1000, 文: 1000 }, true).isFixedPitch).toBe(false)
    expect(named('CourierNewPSMT').isFixedPitch).toBe(true)
    expect(named('CMTT10').isFixedPitch).toBe(true)
  })

  it('changes its mind when later pages show more', () => {
    const font = withWidths({ a: 500 }, true)
    expect(font.isFixedPitch).toBe(true)
    for (const [letter, width] of [
      ['i', 250],
      ['m', 800],
      ['n', 500],
    ] as const)
      font.observe(letter, width)
    expect(font.isFixedPitch).toBe(false)
  })
})
