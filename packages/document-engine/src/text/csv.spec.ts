import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import iconv from 'iconv-lite'
import { EngineFault, type EngineInput } from '../model/document.js'
import { readCsv } from './csv.js'

const LIMITS = { pages: 500, decodedBytes: 26_214_400 }

const input = (content: string | Uint8Array, name = 'x.csv'): EngineInput => ({
  bytes: typeof content === 'string' ? new TextEncoder().encode(content) : content,
  contentType: '',
  name,
  baseUrl: '',
})
const tableOf = (content: string, name?: string): string => readCsv(input(content, name), LIMITS).markdown

describe('a CSV file', () => {
  it('is one table whose first row is the header', () => {
    expect(tableOf('name,price\nkettle,12\ncup,3\n')).toBe(
      '| name | price |\n| --- | --- |\n| kettle | 12 |\n| cup | 3 |\n',
    )
  })

  it.each([
    ['semicolons', 'a;b\n1,5;2'],
    ['tabs', 'a\tb\n1,5\t2'],
    ['bars', 'a|b\n1,5|2'],
    ['what its first line says', 'sep=!\r\na!b\r\n1,5!2'],
  ])('may separate its values by %s', (_name, text) => {
    expect(tableOf(text)).toBe('| a | b |\n| --- | --- |\n| 1,5 | 2 |\n')
  })

  it.each([';', '\t', '|'])('of a few lines, the last one ended, is separated by %j', (delimiter) => {
    const text = 'name;price\r\ncup;1,50\r\n'.replaceAll(';', delimiter)
    expect(tableOf(text)).toBe('| name | price |\n| --- | --- |\n| cup | 1,50 |\n')
  })

  it('with tabs by its name is not guessed at', () => {
    expect(tableOf('a,b,c\t1\nd,e,f\t2', 'x.tsv')).toBe('| a,b,c | 1 |\n| --- | --- |\n| d,e,f | 2 |\n')
  })

  it('keeps what stands in quotes together', () => {
    expect(tableOf('a,b\n"x, ""y""","two\nlines"')).toBe('| a | b |\n| --- | --- |\n| x, "y" | two<br>lines |\n')
  })

  it('with a vast gap inside a value is read in no time', () => {
    const value = `x${' '.repeat(300_000)}y`
    expect(tableOf(`a\n${value}`)).toBe(`| a |\n| --- |\n| ${value} |\n`)
  })

  it('with a quote that is not closed loses no row', () => {
    expect(tableOf('size,n\n"5 inch,1\n7 inch,2\n')).toBe(
      '| size | n |\n| --- | --- |\n| "5 inch | 1 |\n| 7 inch | 2 |\n',
    )
  })

  it.each([
    ['one', 'a,b\n"the "big" kettle, blue",2\n', '| the "big" kettle, blue | 2 |'],
    ['a hundred', `a,b\n"${'x"x'.repeat(100)},",2\n`, `| ${'x"x'.repeat(100)}, | 2 |`],
    ['more', `a,b\n"${'x"x'.repeat(101)}",2\n`, `| "${'x"x'.repeat(101)}" | 2 |`],
    ['as many in all', 'a,b\n' + '"x"y,",2\n'.repeat(102), '| x"y, | 2 |'],
  ])('with %s stray quotes in a value is read, with quotes as they are meant or as they stand', (_name, text, row) => {
    expect(tableOf(text).split('\n')[2]).toBe(row)
  })

  it('that makes the most of its quotes is read in no time, whatever separates its values', () => {
    // Each stray quote, and each guess at the delimiter, would look through the blanks again: a day for so many.
    const value = `"${'x"'.repeat(500_000)}${' '.repeat(1_000_000)}`
    for (const delimiter of [',', ';', '\t', '|', '']) {
      const beganAtMs = performance.now()
      expect(tableOf(value + delimiter)).toContain('x"x"')
      expect(performance.now() - beganAtMs).toBeLessThan(10_000)
    }
  })

  it('is separated by what its first rows say, however the rest of it looks', () => {
    const rows = 'a;b\n'.repeat(20_000)
    expect(tableOf(`${rows}${'x,'.repeat(50)}\n`).split('\n')[0]).toBe('| a | b |')
  })

  it('with short and long rows is as wide as the longest; empty rows and columns are left out', () => {
    expect(tableOf('a,,b\n1\n\n,,2,3\n')).toBe('| a | b | |\n| --- | --- | --- |\n| 1 | | |\n| | 2 | 3 |\n')
  })

  it('cannot break out of its cells', () => {
    expect(tableOf('a\n"x | y"\n<b>*z*\n- 1')).toBe('| a |\n| --- |\n| x \\| y |\n| \\<b>\\*z\\* |\n| - 1 |\n')
  })

  it('in a Chinese charset is read as such', () => {
    const bytes = new Uint8Array(iconv.encode('价格,数量\n苹果,3\n', 'gb18030'))
    expect(readCsv(input(bytes), LIMITS).markdown).toBe('| 价格 | 数量 |\n| --- | --- |\n| 苹果 | 3 |\n')
  })

  it.each(['', '\n\n', ',,\n,,', '""'])('without a value is empty: %j', (text) => {
    expect(tableOf(text)).toBe('')
  })

  it.each([
    ['a row of two million values', ','.repeat(2_000_000)],
    ['a long row above many short ones', `a${',a'.repeat(20_000)}\n${'b\n'.repeat(20_000)}`],
  ])('with %s is refused', (_name, text) => {
    expect(() => tableOf(text)).toThrow(EngineFault)
    expect(() => tableOf(text)).toThrow(/The table has more than \d+ cells/)
  })

  it('of any text is a table whose rows have the same number of cells', () => {
    const piece = fc.constantFrom('a', 'bc', '|', '\\', '"', ',', ';', '\t', '\n', '\r\n', '`', '<b>', ' ')
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
        const rows = tableOf(pieces.join('')).split('\n').slice(0, -1)
        const widths = rows.map((row) => row.replaceAll(/\\[\\|]/g, '').split('|').length)
        expect(new Set(widths).size).toBeLessThanOrEqual(1)
      }),
    )
  })
})
