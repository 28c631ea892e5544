import { describe, expect, it } from '@jest/globals'
import { outlineEntries } from './outline.js'
import { cleanText, pdfMetadata } from './pdf-metadata.js'

const titleOf = (title: unknown, xmpTitle?: string) =>
  pdfMetadata({ info: { Title: title }, xmp: { get: (name) => (name === 'dc:title' ? xmpTitle : undefined) } }).title

describe('pdfMetadata', () => {
  it.each([
    '',
    '  ',
    'Microsoft Word - report final.docx',
    'untitled',
    'Untitled-1',
    'paper.dvi',
    'Document1',
    '无标题',
    42,
  ])('prefers the title of XMP to %j', (title) => {
    expect(titleOf(title, 'A Real Title')).toBe('A Real Title')
    expect(titleOf(title)).toBe('')
  })

  it.each(['Untitled love letters', 'The Document', 'Node.js in Action', 'Titles and deeds'])('keeps %j', (title) => {
    expect(titleOf(title, 'Something else')).toBe(title)
  })

  it('takes one of two equal languages of XMP', () => {
    expect(titleOf('', 'Two ColumnsTwo Columns')).toBe('Two Columns')
    expect(titleOf('', 'bonbon')).toBe('bonbon')
  })

  it('gives subject and keywords, from XMP where the dictionary has none', () => {
    const xmp = new Map<string, unknown>([
      ['dc:description', 'Described'],
      ['dc:subject', ['tea', 'kettle']],
    ])
    expect(pdfMetadata({ info: {}, xmp })).toMatchObject({ description: 'Described', keywords: 'tea, kettle' })
    expect(pdfMetadata({ info: { Subject: 'Said', Keywords: 'a b' }, xmp })).toMatchObject({
      description: 'Said',
      keywords: 'a b',
    })
  })

  it('has empty strings where nothing is said', () => {
    expect(pdfMetadata({ info: undefined, xmp: null })).toEqual({
      title: '',
      description: '',
      keywords: '',
      siteName: '',
      favicon: '',
    })
  })

  it('makes one line of bounded length, without half characters', () => {
    expect(cleanText(' a\u0000b\n c ', 100)).toBe('ab c')
    expect(cleanText('x'.repeat(20), 10)).toBe(`${'x'.repeat(9)}…`)
    expect(cleanText(`${'x'.repeat(8)}😀yyyy`, 10)).toBe(`${'x'.repeat(8)}…`)
  })
})

describe('outlineEntries', () => {
  const node = (title: string, ...items: { title: string; items: never[] }[]) => ({ title, items })

  it('lists titles with their levels in the order of reading', () => {
    expect(outlineEntries([node('One', { title: ' One\none ', items: [] }), node(''), node('Two')])).toEqual([
      { title: 'One', level: 1 },
      { title: 'One one', level: 2 },
      { title: 'Two', level: 1 },
    ])
    expect(outlineEntries(null)).toEqual([])
  })

  it('is bounded in depth and in length', () => {
    interface Deep {
      title: string
      items: Deep[]
    }
    let deep: Deep = { title: 'deepest', items: [] }
    for (let level = 0; level < 1000; level += 1) deep = { title: 'deep', items: [deep] }
    expect(outlineEntries([deep])).toHaveLength(10)
    expect(outlineEntries(Array.from({ length: 9000 }, () => node('many')))).toHaveLength(5000)
  })
})
