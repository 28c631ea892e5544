import { describe, expect, it } from '@jest/globals'
import { type Parts, zipOf } from '../../../../test/support/office-files.js'
import { EngineFault, type EngineOutput } from '../model/document.js'
import { readEpub } from './epub.js'

const CONTAINER =
  '<container><rootfiles><rootfile full-path="OPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'

const chapter = (body: string): string =>
  `<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"><head><title>File</title></head><body>${body}</body></html>`

/** A book of these chapters, in reverse order of their names. */
function book(chapters: readonly string[], more: Parts = {}, metadata = ''): Uint8Array {
  const number = (index: number): number => chapters.length - index
  const items = chapters.map(
    (_, index) =>
      `<item id="c${number(index)}" href="text/c%20${number(index)}.xhtml" media-type="application/xhtml+xml"/>`,
  )
  const spine = chapters.map((_, index) => `<itemref idref="c${number(index)}"/>`)
  const parts = chapters.map((content, index) => [`OPS/text/c ${number(index)}.xhtml`, chapter(content)])
  return zipOf({
    mimetype: 'application/epub+zip',
    'META-INF/container.xml': CONTAINER,
    'OPS/book.opf': `<package xmlns:dc="d"><metadata>${metadata}</metadata><manifest><item id="n" href="nav.xhtml" properties="nav" media-type="application/xhtml+xml"/>${items.join('')}</manifest><spine><itemref idref="n"/>${spine.join('')}</spine></package>`,
    'OPS/nav.xhtml': chapter('<nav>Contents</nav>'),
    ...(Object.fromEntries(parts) as Parts),
    ...more,
  })
}

const read = (bytes: Uint8Array): EngineOutput =>
  readEpub({ bytes, contentType: '', name: 'x.epub', baseUrl: '' }, { pages: 500, decodedBytes: 1_000_000 })

describe('an EPUB book', () => {
  it('is its chapters in the order of reading, without the table of contents', () => {
    const { markdown, kind } = read(
      book([
        '<h1>One</h1><p>First <a href="c%201.xhtml#x">link</a>, <a href="https://example.org/">web</a>.<a href="#n" epub:type="noteref">2</a></p>',
        '<h1><a id="x"/>Two</h1><p><a id="y"/>Second</p><ul><li>item</li></ul>',
      ]),
    )
    expect(markdown).toBe('# One\n\nFirst link, [web](https://example.org/).²\n\n# Two\n\nSecond\n\n- item\n')
    expect(kind).toBe('epub')
  })

  it('has the metadata of its package', () => {
    const metadata =
      '<dc:title>Tea</dc:title><dc:title>A book</dc:title><dc:description>&lt;p>About&lt;/p> tea</dc:description>' +
      '<dc:subject>tea</dc:subject><dc:subject>cups</dc:subject><dc:language>en_gb</dc:language>'
    expect(read(book(['<p>x</p>'], {}, metadata)).metadata).toMatchObject({
      title: 'Tea',
      description: 'About tea',
      keywords: 'tea, cups',
      language: 'en-GB',
      warnings: [],
    })
  })

  it('has the words in place of its pictures, and says which are left out', () => {
    const { markdown, metadata } = read(
      book(['<p><img src="a.png" alt="A &lt;red> cup"/> and <img src="b.png" /><img src="c.png" alt=""/></p>']),
    )
    expect(markdown).toBe('A \\<red> cup and\n')
    expect(metadata.warnings).toEqual([{ code: 'pictures_dropped', message: 'One picture has no description.' }])
  })

  it('says that a chapter is missing', () => {
    const { metadata, markdown } = read(
      book(['<p>x</p>'], {
        'OPS/book.opf':
          '<package><manifest><item id="a" href="text/c%201.xhtml" media-type="application/xhtml+xml"/><item id="b" href="gone.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="b"/><itemref idref="a"/></spine></package>',
      }),
    )
    expect(markdown).toBe('x\n')
    expect(metadata.warnings).toEqual([{ code: 'pages_unread', message: 'One chapter is missing.' }])
  })
})

describe('an EPUB book that cannot be read', () => {
  const faultOf = (bytes: Uint8Array): string => {
    try {
      return read(bytes).markdown
    } catch (error) {
      if (error instanceof EngineFault) return error.fault
      throw error
    }
  }

  it.each([
    [
      'of which chapters are encrypted',
      'encrypted',
      book(['x'], {
        'META-INF/encryption.xml':
          '<encryption><EncryptedData><CipherData><CipherReference URI="OPS/text/c%201.xhtml"/></CipherData></EncryptedData></encryption>',
      }),
    ],
    [
      'of which fonts are encrypted is read',
      'x\n',
      book(['x'], {
        'META-INF/encryption.xml':
          '<encryption><EncryptedData><CipherData><CipherReference URI="OPS/a.otf"/></CipherData></EncryptedData></encryption>',
      }),
    ],
    ['without its package', 'broken', zipOf({ 'META-INF/container.xml': CONTAINER })],
    ['that unpacks to too much', 'too_large', book(['x'.repeat(600_000), 'y'.repeat(600_000)])],
    [
      'that shows a chapter very often',
      'too_large',
      book(['x'.repeat(1000)], {
        'OPS/book.opf': `<package><manifest><item id="a" href="text/c%201.xhtml" media-type="application/xhtml+xml"/></manifest><spine>${'<itemref idref="a"/>'.repeat(10_000)}</spine></package>`,
      }),
    ],
    ['with 100,000 nested elements is read', 'x\n', book([`${'<div>'.repeat(100_000)}x`])],
  ])('%s: %s', (_name, expected, bytes) => {
    expect(faultOf(bytes)).toBe(expected)
  })
})
