import { describe, expect, it } from '@jest/globals'
import { cpuMs } from '../../../../test/support/eventually.js'
import { coreProperties, officeFile, workbookFile } from '../../../../test/support/office-files.js'
import { EngineFault, type EngineOutput } from '../model/document.js'
import { builtInCode, NumberFormat } from './xlsx-number-format.js'
import { readXlsx } from './xlsx.js'

const read = (bytes: Uint8Array): EngineOutput =>
  readXlsx({ bytes, contentType: '', name: 'x.xlsx', baseUrl: '' }, { pages: 500, decodedBytes: 5_000_000 })

const sheet = (rows: string, more = ''): string => `<sheetData>${rows}</sheetData>${more}`
const text = (value: string, reference = ''): string =>
  `<c ${reference && `r="${reference}"`} t="inlineStr"><is><t>${value}</t></is></c>`

describe('a workbook', () => {
  it('is a heading and a table for each sheet', () => {
    const { markdown, pages, kind } = read(
      workbookFile([
        { name: 'Tea &amp; more', content: sheet(`<row>${text('a')}${text('b')}</row><row><c><v>1</v></c></row>`) },
        { name: 'Second', content: sheet(`<row>${text('x')}</row>`) },
      ]),
    )
    expect(markdown).toBe('## Tea & more\n\n| a | b |\n| --- | --- |\n| 1 | |\n\n## Second\n\n| x |\n| --- |\n')
    expect({ pages, kind }).toEqual({ pages: 2, kind: 'xlsx' })
  })

  it('gives the values of all types of cells', () => {
    const cells = [
      '<c t="s"><v>1</v></c>',
      '<c t="str"><f>A1&amp;"x"</f><v>joined</v></c>',
      '<c><f>1+1</f><v>2</v></c>',
      '<c t="b"><v>1</v></c>',
      '<c t="e"><v>#DIV/0!</v></c>',
      '<c t="d"><v>2024-05-01</v></c>',
      '<c s="1"><v>45413</v></c>',
      '<c s="2"><v>0.125</v></c>',
    ]
    const styles =
      '<numFmts><numFmt numFmtId="164" formatCode="0.0%"/></numFmts><cellStyleXfs><xf numFmtId="14"/></cellStyleXfs>' +
      '<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="164"/></cellXfs>'
    const sharedStrings = '<si><t>no</t></si><si><r><t>shared </t></r><r><t>runs</t></r><rPh><t>aid</t></rPh></si>'
    const { markdown } = read(
      workbookFile([{ name: 'S', content: sheet(`<row>${cells.join('')}</row>`) }], { styles, sharedStrings }),
    )
    expect(markdown).toContain('| shared runs | joined | 2 | TRUE | #DIV/0! | 2024-05-01 | 2024-05-01 | 12.5% |')
  })

  it('counts its days from where it says', () => {
    const content = sheet('<row><c s="0"><v>43951</v></c></row>')
    const styles = '<cellXfs><xf numFmtId="14"/></cellXfs>'
    expect(read(workbookFile([{ name: 'S', content }], { styles, properties: 'date1904="1"' })).markdown).toContain(
      '2024-05-01',
    )
  })

  it('keeps columns in line and leaves out those in which nothing stands', () => {
    const content = sheet(`<row>${text('a', 'B2')}${text('b', 'D2')}</row><row/><row>${text('c', 'D9')}</row>`)
    expect(read(workbookFile([{ name: 'S', content }])).markdown).toBe('## S\n\n| a | b |\n| --- | --- |\n| | c |\n')
  })

  it('links cells, but to no script', () => {
    const content = sheet(
      `<row>${text('site', 'A1')}${text('bad', 'B1')}</row>`,
      '<hyperlinks><hyperlink ref="A1" r:id="r1"/><hyperlink ref="B1" r:id="r2"/></hyperlinks>',
    )
    const relations = [
      { id: 'r1', type: 'hyperlink', target: 'https://example.org/a_(b)', isExternal: true },
      { id: 'r2', type: 'hyperlink', target: 'javascript:alert(1)', isExternal: true },
    ]
    expect(read(workbookFile([{ name: 'S', content, relations }])).markdown).toContain(
      '| [site](https://example.org/a_(b)) | bad |',
    )
  })

  it('keeps hidden and empty sheets to itself', () => {
    const content = sheet(`<row>${text('x')}</row>`)
    const { markdown, pages } = read(
      workbookFile([
        { name: 'Hidden', content, state: 'hidden' },
        { name: 'Very', content, state: 'veryHidden' },
        { name: 'Empty', content: sheet('') },
        { name: 'Seen', content },
      ]),
    )
    expect(markdown).toBe('## Seen\n\n| x |\n| --- |\n')
    expect(pages).toBe(1)
  })

  it('has the metadata of its properties', () => {
    const core = coreProperties(
      '<dc:title> A \n plan </dc:title><dc:subject>Tea</dc:subject><cp:keywords>a, b</cp:keywords>',
    )
    expect(read(workbookFile([{ name: 'S', content: '' }], {}, { 'docProps/core.xml': core })).metadata).toEqual({
      title: 'A plan',
      description: 'Tea',
      keywords: 'a, b',
      siteName: '',
      favicon: '',
      language: '',
      warnings: [],
    })
  })

  it('may write its XML with prefixes, and in UTF-16', () => {
    const workbook = workbookFile(
      [{ name: 'S', content: '' }],
      {},
      {
        'xl/worksheets/sheet1.xml': Buffer.from(
          '\ufeff<x:worksheet><x:sheetData><x:row><x:c><x:v>7</x:v></x:c></x:row></x:sheetData></x:worksheet>',
          'utf16le',
        ),
      },
    )
    expect(read(workbook).markdown).toContain('| 7 |')
  })
})

describe('a hostile workbook', () => {
  const faultOf = (bytes: Uint8Array): string => {
    try {
      return read(bytes).markdown
    } catch (error) {
      if (error instanceof EngineFault) return error.fault
      throw error
    }
  }

  it('with one long string in a million cells is refused', () => {
    const rows = '<row><c t="s"><v>0</v></c></row>'.repeat(50_000)
    const sharedStrings = `<si><t>${'x'.repeat(32_000)}</t></si>`
    expect(faultOf(workbookFile([{ name: 'S', content: sheet(rows) }], { sharedStrings }))).toBe('too_large')
  })

  it('with cells far apart is refused without a table of the whole', () => {
    const columns = ['A', 'Z', 'AZ', 'ZZ', 'AZZ', 'XFD']
    const corner = (row: number): string => `<row>${text('x', `${columns[row % 6] ?? ''}${row}`)}</row>`
    const rows = Array.from({ length: 1000 }, (_, row) => corner(row)).join('')
    expect(faultOf(workbookFile([{ name: 'S', content: sheet(rows) }])).length).toBeLessThan(50_000)
    const wide = Array.from({ length: 16_000 }, (_, column) => `<row>${'<c/>'.repeat(column % 4000)}${text('x')}</row>`)
    expect(faultOf(workbookFile([{ name: 'S', content: sheet(wide.slice(0, 4000).join('')) }]))).toBe('too_large')
  })

  it('with entities of its own is refused, and they stay what they are', () => {
    const entities =
      '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c SYSTEM "file:///etc/passwd">]>' +
      '<worksheet><sheetData><row><c t="str"><v>&b;&c;</v></c></row></sheetData></worksheet>'
    expect(faultOf(workbookFile([{ name: 'S', content: '' }], {}, { 'xl/worksheets/sheet1.xml': entities }))).toBe(
      'broken',
    )
    expect(faultOf(workbookFile([{ name: 'S', content: sheet('<row><c t="str"><v>&b;</v></c></row>') }]))).toContain(
      '&b;',
    )
  })

  it('that is nested deeply is refused', () => {
    expect(faultOf(workbookFile([{ name: 'S', content: '<a>'.repeat(100_000) }]))).toBe('too_large')
  })

  it('without its parts is damaged', () => {
    expect(faultOf(officeFile('xl/workbook.xml', { 'xl/x.xml': '' }))).toBe('broken')
    expect(faultOf(workbookFile([], {}, { 'xl/workbook.xml': 'no XML' }))).toBe('broken')
  })
})

const shown = (raw: string | number, code: string, startsIn1904 = false): string =>
  new NumberFormat(code).text(String(raw), startsIn1904)

describe('a number', () => {
  it.each([
    // Numbers
    [0.30000000000000004, 'General', '0.3'],
    ['1.5E-3', 'General', '0.0015'],
    ['12345678901234567890', 'General', '12345678901234567890'],
    [-7, 'General', '-7'],
    [-7.5, '0', '-8'],
    [1.005, '0.00', '1.01'],
    [1234567.891, '#,##0.00', '1,234,567.89'],
    [-1234.5, '#,##0.0', '-1,234.5'],
    [0.5, '#.##', '.5'],
    [0, '#,##0', '0'],
    [5, '0.##', '5'],
    [7, '000', '007'],
    [1234567, '0.0,,"M"', '1.2M'],
    [12345, '#,##0,', '12'],
    [5551234, '000-0000', '555-1234'],
    [1e300, '0', '1' + '0'.repeat(300)],
    [-0.001, '0.0', '0.0'],
    // Percent, currency, units
    [0.125, '0.0%', '12.5%'],
    [0.07, '0%', '7%'],
    [1234.5, '$#,##0.00', '$1,234.50'],
    [12.5, '#,##0.00\\ [$€-407]', '12.50 €'],
    [-3, '[$£-809]#,##0;[Red]-[$£-809]#,##0', '-£3'],
    [-1234.5, '_($* #,##0.00_);_($* (#,##0.00);_($* "-"??_);_(@_)', '$(1,234.50)'],
    [0, '_($* #,##0.00_);_($* (#,##0.00);_($* "-"??_);_(@_)', '$-'],
    [3, '0" kg"', '3 kg'],
    [3, 'General" kg"', '3 kg'],
    // Sections
    [-3, '0;(0)', '(3)'],
    [0, '0;-0;"none"', 'none'],
    [5, ';;;', ''],
    [150, '[>=100]"high";[<0]"low";0', 'high'],
    [-5, '[>=100]"high";[<0]"low";0', 'low'],
    [50, '[>=100]"high";[<0]"low";0', '50'],
    // Powers and fractions
    [12345, '0.00E+00', '1.23E+04'],
    [0.00012, '0.0E+0', '1.2E-4'],
    [9.99, '0.0E+0', '1.0E+1'],
    [12345, '##0.0E+0', '12.3E+3'],
    [1.5, '# ?/?', '1 1/2'],
    [0.3333, '# ?/?', '1/3'],
    [2, '# ??/??', '2'],
    [0.25, '?/8', '2/8'],
    // Days and times
    [45413, 'yyyy\\-mm\\-dd;@', '2024-05-01'],
    [45413, '[$-409]d\\-mmm\\-yy;@', '1-May-24'],
    [45413, '[$-407]d. mmmm yyyy', '1. Mai 2024'],
    [45413, 'dddd, mmmm d, yyyy', 'Wednesday, May 1, 2024'],
    [45413, '[$-F800]dddd, mmmm dd, yyyy', '2024-05-01'],
    [45413.5625, 'dd.mm.yyyy hh:mm', '01.05.2024 13:30'],
    [45413.562511574, 'm/d/yy h:mm:ss AM/PM', '5/1/24 1:30:01 PM'],
    [0.75, 'h:mm', '18:00'],
    [0.0000115741, 'mm:ss.0', '00:01.0'],
    [1.5, '[h]:mm:ss', '36:00:00'],
    [-0.5, '[hh]:mm', '-12:00'],
    [0.0625, '[mm]:ss', '90:00'],
    [1, 'yyyy-mm-dd', '1900-01-01'],
    [59, 'yyyy-mm-dd', '1900-02-28'],
    [61, 'yyyy-mm-dd', '1900-03-01'],
    [2958465, 'yyyy-mm-dd', '9999-12-31'],
    [-1, 'yyyy-mm-dd', '-1'],
    [99999999, 'yyyy-mm-dd', '99999999'],
    // None
    ['n/a', 'yyyy-mm-dd', 'n/a'],
    ['', '0', ''],
    ['Infinity', 'yyyy-mm-dd', 'Infinity'],
  ])('%s in the format %s is shown as %s', (raw, code, text) => {
    expect(shown(raw, code)).toBe(text)
  })

  it('counts from 1904 where the workbook does', () => {
    expect(shown(43951, 'yyyy-mm-dd', true)).toBe('2024-05-01')
    expect(shown(0.5, 'h:mm', true)).toBe('12:00')
  })

  it.each(['[', '"', '\\', '[h', '[[h]', '0', '?/', ',', 'm'])(
    'in a format of nothing but %j is written in linear time',
    (piece) => {
      const startedAtMs = cpuMs()
      expect(shown(1.5, piece.repeat(50_000))).toBeDefined()
      expect(cpuMs() - startedAtMs).toBeLessThan(100)
    },
  )

  it.each([
    [0, '1.25'],
    [4, '1.25'],
    [9, '125%'],
    [12, '1 1/4'],
    [14, '1900-01-01'],
    [20, '6:00'],
    [22, '1900-01-01 06:00'],
    [44, '$1.25'],
    [46, '30:00:00'],
    [49, '1.25'],
    [57, '1900-01-01'],
    [NaN, '1.25'],
  ])('in the built-in format %d is %s', (id, text) => {
    expect(shown(1.25, builtInCode(id))).toBe(text)
  })
})
