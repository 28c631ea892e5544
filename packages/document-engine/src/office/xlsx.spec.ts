import { describe, expect, it } from '@jest/globals'
import { cpuMs } from '../../../../test/support/eventually.js'
import { coreProperties, officeFile, workbookFile } from '../../../../test/support/office-files.js'
import { EngineFault, type EngineOutput } from '../model/document.js'
import { builtInKind, kindOfFormat, numberText } from './xlsx-number-format.js'
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

describe('a number format', () => {
  it.each([
    ['General', 'number'],
    ['0.00', 'number'],
    ['#,##0.00 "m/d/y"', 'number'],
    ['[Red]0;[Blue]-0', 'number'],
    ['#,##0\\ [$€-407]', 'number'],
    ['0.00E+00', 'number'],
    ['0%', 'percent'],
    ['0.0\\ %', 'percent'],
    ['yyyy-mm-dd', 'date'],
    ['[$-409]d\\-mmm\\-yy;@', 'date'],
    ['mmm', 'date'],
    ['dd.mm.yyyy hh:mm', 'date-time'],
    ['h:mm AM/PM', 'time'],
    ['mm:ss.0', 'time'],
    ['[h]:mm:ss', 'duration'],
    ['[mm]:ss', 'duration'],
  ])('%s is that of a %s', (code, kind) => {
    expect(kindOfFormat(code)).toBe(kind)
  })

  it.each(['[', '"', '\\', '[h', '[[h]'])('of nothing but %j is recognised in linear time', (piece) => {
    const startedAtMs = cpuMs()
    expect(kindOfFormat(piece.repeat(50_000))).toBeDefined()
    expect(cpuMs() - startedAtMs).toBeLessThan(100)
  })

  it('has the kind that its first 255 characters say, which is all that Excel takes', () => {
    expect(kindOfFormat(`${'0'.repeat(254)}%`)).toBe('percent')
    expect(kindOfFormat(`${'0'.repeat(255)}%`)).toBe('number')
  })

  it.each([
    [0, 'number'],
    [9, 'percent'],
    [14, 'date'],
    [20, 'time'],
    [22, 'date-time'],
    [46, 'duration'],
    [49, 'number'],
    [57, 'date'],
    [NaN, 'number'],
  ])('of number %d is that of a %s', (id, kind) => {
    expect(builtInKind(id)).toBe(kind)
  })
})

describe('a number', () => {
  it.each([
    ['45413', 'date', '2024-05-01'],
    ['45413.5625', 'date-time', '2024-05-01 13:30'],
    ['45413.562511574', 'date-time', '2024-05-01 13:30:01'],
    ['0.75', 'time', '18:00'],
    ['1', 'date', '1900-01-01'],
    ['59', 'date', '1900-02-28'],
    ['61', 'date', '1900-03-01'],
    ['2958465', 'date', '9999-12-31'],
    ['-1', 'date', '-1'],
    ['99999999', 'date', '99999999'],
    ['1.5', 'duration', '36:00:00'],
    ['-0.5', 'duration', '-12:00:00'],
    ['0.125', 'percent', '12.5%'],
    ['0.07', 'percent', '7%'],
    ['0.30000000000000004', 'number', '0.3'],
    ['1.5E-3', 'number', '0.0015'],
    ['12345678901234567890', 'number', '12345678901234567890'],
    ['-7', 'number', '-7'],
    ['n/a', 'date', 'n/a'],
    ['', 'number', ''],
    ['Infinity', 'date', 'Infinity'],
  ] as const)('%s as a %s is %s', (raw, kind, text) => {
    expect(numberText(raw, kind, false)).toBe(text)
  })

  it('counts from 1904 where the workbook does', () => {
    expect(numberText('43951', 'date', true)).toBe('2024-05-01')
    expect(numberText('0.5', 'time', true)).toBe('12:00')
  })
})
