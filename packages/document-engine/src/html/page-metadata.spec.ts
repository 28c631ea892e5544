import { describe, expect, it } from '@jest/globals'
import type { EngineMetadata } from '../model/document.js'
import { readTree } from './html-parser.js'
import { pageBaseUrl, pageMetadata } from './page-metadata.js'

const URL_OF_PAGE = 'https://example.org/blog/post.html'

function metadataOf(html: string, url = URL_OF_PAGE): EngineMetadata {
  const tree = readTree(html)
  return pageMetadata(tree, url, pageBaseUrl(tree, url))
}

describe('the metadata of a page', () => {
  it.each([
    ['its title element', '<title> A\n &amp; B </title><meta property=og:title content=C><h1>D</h1>', 'A & B'],
    ['the title it gives to others', '<title> </title><meta name="OG:Title" content="C"><h1>D</h1>', 'C'],
    ['its first heading', '<h1></h1><h1>D <b>E</b></h1>', 'D E'],
    ['nothing when it has none', '<p>x', ''],
    ['no title of a drawing', '<svg><title>Icon</title></svg><h1>D</h1>', 'D'],
  ])('calls it by %s', (_what, html, title) => {
    expect(metadataOf(html).title).toBe(title)
  })

  it.each([
    ['description', '<meta name=description content=a><meta property=og:description content=b>', 'a'],
    [
      'several, without repeating',
      '<meta name=description content=a><meta name=Description content=b><meta property=description content=a>',
      'a, b',
    ],
    ['og:description', '<meta name=og:description content=b><meta name=twitter:description content=c>', 'b'],
    ['twitter:description', '<meta property=twitter:description content=c>', 'c'],
    ['one that is not blank', '<meta name=description content=" "><meta property=og:description content=b>', 'b'],
  ])('describes it by its %s', (_what, html, description) => {
    expect(metadataOf(html).description).toBe(description)
  })

  it('joins keywords, and takes tags where there are none', () => {
    expect(metadataOf('<meta name=keywords content="a, b"><meta name=KEYWORDS content=c>').keywords).toBe('a, b,c')
    expect(metadataOf('<meta property=article:tag content=x><meta property=article:tag content=y>').keywords).toBe(
      'x,y',
    )
  })

  it.each([
    ['og:site_name', '<meta property=og:site_name content=S><meta name=application-name content=A>', 'S'],
    ['the application', '<meta name=application-name content=A>', 'A'],
    ['the application on telephones', '<meta name=apple-mobile-web-app-title content=M>', 'M'],
    ['its account', '<meta name=twitter:site content=@acme>', 'acme'],
  ])('names the site by %s', (_what, html, siteName) => {
    expect(metadataOf(html).siteName).toBe(siteName)
  })

  it.each([
    ['an icon', '<link rel="shortcut icon" href="/i.png">', 'https://example.org/i.png'],
    [
      'an icon before one for telephones',
      '<link rel=apple-touch-icon href=t.png><link rel=ICON href=i.png>',
      'https://example.org/blog/i.png',
    ],
    ['one for telephones', '<link rel=apple-touch-icon href=t.png>', 'https://example.org/blog/t.png'],
    ['no icon inside the page', '<link rel=icon href="data:image/png;base64,AA">', 'https://example.org/favicon.ico'],
    ['an icon beside its base', '<base href="/static/"><link rel=icon href=i.png>', 'https://example.org/static/i.png'],
    ['where browsers look', '', 'https://example.org/favicon.ico'],
    [
      'where browsers look, whatever the base',
      '<base href="https://cdn.example.net/">',
      'https://example.org/favicon.ico',
    ],
  ])('shows %s', (_what, html, favicon) => {
    expect(metadataOf(html).favicon).toBe(favicon)
  })

  it('shows of an upload only an icon that is absolute', () => {
    expect(metadataOf('<link rel=icon href=i.png>', '').favicon).toBe('')
    expect(metadataOf('<link rel=icon href=https://example.net/i.png>', '').favicon).toBe('https://example.net/i.png')
  })

  it('cuts each value after 2 KiB, between two characters', () => {
    const { title, description } = metadataOf(
      `<title>${'é'.repeat(3000)}</title><meta name=description content=${'x'.repeat(3000)}>`,
    )
    expect(title).toBe('é'.repeat(1024))
    expect(Buffer.byteLength(metadataOf(`<title>${'x' + '雪'.repeat(3000)}</title>`).title)).toBe(2047)
    expect(description).toHaveLength(2048)
  })
})

describe('the base of a page', () => {
  it.each([
    ['its own address', '<p>', URL_OF_PAGE],
    ['what it declares', '<base target=_top><base href="../a/"><base href=/b/>', 'https://example.org/a/'],
    ['its own address, when it declares no address of the web', '<base href="javascript:x">', URL_OF_PAGE],
  ])('is %s', (_what, html, expected) => {
    expect(pageBaseUrl(readTree(html), URL_OF_PAGE)).toBe(expected)
  })

  it('is unknown for an upload that declares none', () => {
    expect(pageBaseUrl(readTree('<base href="/x/">'), '')).toBe('')
  })
})
