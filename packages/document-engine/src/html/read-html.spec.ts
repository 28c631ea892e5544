import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { cpuMs } from '../../../../test/support/eventually.js'
import { EngineFault, type EngineMetadata, type EngineOutput } from '../model/document.js'
import { descendantsOf } from '../markdown/markup-node.js'
import { HtmlElement } from './html-node.js'
import { readTree } from './html-parser.js'
import { pageBaseUrl, pageMetadata, readHtml } from './read-html.js'

const LIMITS = { pages: 500, decodedBytes: 25_000_000 }

function read(
  html: string | Uint8Array,
  contentType = 'text/html; charset=utf-8',
  baseUrl = 'https://example.org/tea/',
): EngineOutput {
  const bytes = typeof html === 'string' ? new TextEncoder().encode(html) : html
  return readHtml({ bytes, contentType, name: 'page.html', baseUrl }, LIMITS)
}

const paragraph = (subject: string): string =>
  `<p>${subject} is heated slowly in a kettle of copper, because copper, as every cook knows, carries heat well. ` +
  `Nobody who has tried ${subject} this way, on a cold morning, wants to go back to anything else.</p>`
const ARTICLE = ['Water', 'Milk', 'Broth', 'Cider'].map(paragraph).join('')

/** A page as sites have them: the article among all that surrounds it. */
function sitePage(article: string, head = '', after = ''): string {
  return `<!doctype html><html><head><title>Kettles - Example Kitchen</title>${head}</head><body>
    <header class="site-header"><a href="/">Example Kitchen</a><nav class="main-menu"><ul>
      <li><a href="/a">Recipes</a></li><li><a href="/b">Reviews</a></li><li><a href="/c">Shop</a></li></ul></nav></header>
    <div class="cookie-banner" role="dialog">We use cookies to improve your experience. <button>Accept all</button></div>
    <main><article class="post"><h1>On kettles</h1><div class="entry-content">${article}</div>
      <div class="share-buttons"><a href="https://s.example/f">Share</a><a href="https://s.example/t">Tweet</a></div></article>
      ${after}</main>
    <aside class="sidebar"><h3>Popular posts</h3><ul><li><a href="/1">Ten best pots</a></li><li><a href="/2">Pans</a></li></ul></aside>
    <footer class="site-footer"><p>© 2024 Example Kitchen. All rights reserved.</p><a href="/p">Privacy policy</a></footer>
    </body></html>`
}

describe('reading a page', () => {
  it('gives the article below its title and nothing of what surrounds it', () => {
    const { html, markdown, kind, pages } = read(sitePage(ARTICLE))
    expect({ kind, pages }).toEqual({ kind: 'html', pages: 1 })
    expect(markdown).toMatch(/^# On kettles\n\nWater is heated/)
    for (const subject of ['Water', 'Milk', 'Broth', 'Cider']) expect(markdown).toContain(`tried ${subject}`)
    expect(markdown).not.toMatch(/cookies|Recipes|Share|Popular|Ten best|Privacy|rights/)
    expect(html).toMatch(/^<[^h].*Water is heated/s)
    expect(html).not.toMatch(/cookies|Recipes|Share|On kettles/)
  })

  it('reads the text whose charset only the page names', () => {
    const bytes = Buffer.from(`<meta charset=windows-1252>${paragraph('Cr\u00e8me')}`, 'latin1')
    expect(read(bytes, 'text/html').markdown).toContain('tried Crème')
  })

  it('makes links and pictures absolute against the base that the page declares', () => {
    const { html, markdown } = read(
      sitePage(
        `${ARTICLE}<p>See <a href="pots">all about pots</a>, and what to cook in them: <img src="pot.png" alt="A pot"> soup, mostly.</p>${ARTICLE}`,
        '<base href="https://example.net/k/">',
      ),
    )
    expect(markdown).toContain('[all about pots](https://example.net/k/pots)')
    expect(markdown).toContain('![A pot](https://example.net/k/pot.png)')
    expect(html).toContain('<img src="https://example.net/k/pot.png" alt="A pot">')
  })

  it('keeps a picture between two paragraphs, and none of the sidebar', () => {
    const page = sitePage(`${ARTICLE}<figure><img src=in.png></figure>${ARTICLE}`).replace(
      '<h3>Popular',
      '<img src=out.png><h3>Popular',
    )
    expect(read(page).markdown).toContain('in.png')
    expect(read(page).markdown).not.toContain('out.png')
  })

  it('keeps all cells of a table together', () => {
    const table = '<table><tr><th>Metal<th>Heat<tr><td>Copper<td>401<tr><td>Iron<td></table>'
    expect(read(sitePage(`${ARTICLE}${table}${ARTICLE}`)).markdown).toContain(
      '| Metal | Heat |\n| --- | --- |\n| Copper | 401 |\n| Iron | |',
    )
  })

  it('keeps the lines of code and the language it is in', () => {
    const code = '<pre><code class="language-js">let a = 1\n<span>  b()</span></code></pre>'
    expect(read(sitePage(`${ARTICLE}${code}${ARTICLE}`)).markdown).toContain('```js\nlet a = 1\n  b()\n```')
  })

  it('keeps headings between two parts of the content', () => {
    const { markdown } = read(sitePage(`${ARTICLE}<h2>More</h2><h3>Of the same</h3>${ARTICLE}`))
    expect(markdown).toContain('## More\n\n### Of the same\n\n')
  })

  it('leaves out comments below an article', () => {
    const comments = `<section class="comments"><h2>2 comments</h2>${['Tea', 'Soup'].map((what) => `<div class="comment"><b>Anna</b>${paragraph(what)}</div>`).join('')}</section>`
    const said = read(sitePage(ARTICLE, '<meta property=og:type content=article>', comments)).markdown
    expect(said).toContain('tried Cider')
    expect(said).not.toContain('tried Tea')
  })

  it('leaves out what is hidden, unless a click on the page shows it', () => {
    const hidden = `<div style="display:none">${paragraph('Poison')}</div>`
    const panel = `<div class="accordion-panel" hidden>${paragraph('Cocoa')}</div>`
    const { markdown } = read(sitePage(`${ARTICLE}${hidden}${panel}${ARTICLE}`))
    expect(markdown).not.toContain('Poison')
    expect(markdown).toContain('Cocoa')
  })

  it('leaves out labels of adverts and comments, and links to edit a section, and keeps the same words in lists', () => {
    const heading = '<h2>Past<span class="e">[<a href="/w?action=edit&s=1">edit</a>]</span></h2>'
    const { markdown } = read(
      sitePage(
        `${ARTICLE}<div><p>Advertisement</p></div>${heading}${ARTICLE}<p><a href="#r">Reply</a></p><ul><li>Reply</li><li>Share</li></ul>${ARTICLE}`,
      ),
    )
    expect(markdown).toContain('\n## Past\n')
    expect(markdown).not.toContain('Advertisement')
    expect(markdown.match(/Reply/g)).toHaveLength(1)
    expect(markdown).toContain('- Reply\n- Share')
  })

  it('keeps a heading that is about editing', () => {
    expect(read(sitePage(`${ARTICLE}<h2><a href="#edit">Edit</a></h2>${ARTICLE}`)).markdown).toContain('## ')
  })

  it('keeps paragraphs with hidden pieces, without these', () => {
    const formula =
      '<span class="formula"><span style="display: none;"><math><semantics><mi>x</mi><annotation encoding="application/x-tex">{\\displaystyle x^{2}}</annotation></semantics></math></span><img class="mwe-math-fallback-image-inline" alt="{\\displaystyle x^{2}}" src="x.svg" aria-hidden="true"></span>'
    const place = '<span style="display:none">51.5; -0.1</span><span aria-hidden="true">London</span>'
    const paragraphs = ['Water', 'Milk', 'Broth'].map((what) => paragraph(`${what} ${formula} of ${place}`)).join('')
    const { markdown } = read(sitePage(`${ARTICLE}${paragraphs}`))
    expect(markdown).toContain('tried Water $x^{2}$ of London this way')
    expect(markdown.match(/of London is heated/g)).toHaveLength(3)
    expect(markdown).not.toMatch(/51\.5|x\.svg/)
  })

  it('reads the tables of XHTML whose anchors close themselves', () => {
    const rows = ['Copper', 'Iron', 'Tin'].map(
      (metal) => `<tr><td>${metal}<a class="indexterm" id="i-${metal}"/></td><td>4<span/>01</td></tr>`,
    )
    const page = `<?xml version="1.0" encoding="UTF-8"?><html xmlns="http://www.w3.org/1999/xhtml"><body><div class="chapter"><h2><a id="m"/>Metals</h2>${ARTICLE}<table><tr><th>Metal</th><th>Heat</th></tr>${rows.join('')}</table>${ARTICLE}</div></body></html>`
    const table = '| Metal | Heat |\n| --- | --- |\n| Copper | 401 |\n| Iron | 401 |\n| Tin | 401 |'
    expect(read(page).markdown).toContain(table)
    const bare = page.replace(/^<\?xml[^>]*>/, '')
    expect(read(bare, 'application/xhtml+xml').markdown).toContain(table)
  })

  it('reads lists of members as tables below their headings', () => {
    const table = (heading: string, row: string): string =>
      `<table><tr><td colspan=2><h2>${heading}</h2></td></tr><tr><td>int<td><a href=a>${row}</a> (self)</tr><tr><td>&nbsp;<td>${row} counts.</tr></table>`
    const { markdown } = read(`<div class="contents">${ARTICLE}${table('Methods', 'cups')}${ARTICLE}</div>`)
    expect(markdown).toContain(
      '## Methods\n\n| int | [cups](https://example.org/tea/a) (self) |\n| --- | --- |\n| | cups counts. |\n',
    )
  })

  it('reads a page that stays hidden until a script shows it', () => {
    expect(read(`<body><div style="visibility:hidden">${ARTICLE}</div></body>`).markdown).toContain('tried Cider')
  })

  it('reads all answers of a forum', () => {
    const posts = ['Water', 'Milk', 'Broth'].map(
      (what) => `<li class="message"><h4>Bob</h4><div class="message-body">${paragraph(what)}</div></li>`,
    )
    const { markdown } = read(
      `<title>Which drink? | Forum</title><h1>Which drink?</h1><ol class="thread message-list">${posts.join('')}</ol>`,
    )
    for (const what of ['Water', 'Milk', 'Broth']) expect(markdown).toContain(`tried ${what}`)
  })

  it('takes the article from the data of the page when only a script would show it', () => {
    const data = JSON.stringify({
      '@type': 'NewsArticle',
      articleBody: `${'First line of the story. '.repeat(10)}\n\nLast line.`,
    })
    const { markdown, html } = read(
      `<script type="application/ld+json">${data}</script><h1>Story</h1><div id=app>Loading …</div>`,
    )
    expect(markdown).toMatch(/First line of the story\.\n\nLast line\.\n$/)
    expect(html).toContain('<p>Last line.</p>')
  })

  it('takes the prose from the state of an application that shows nothing yet', () => {
    const body = ['Water', 'Milk'].map((what) => ({ html: paragraph(what) }))
    const state = JSON.stringify({ props: { pageProps: { post: { body } } } })
    const page = `<title>Drinks</title><div id="__next">Loading…</div><script id="__NEXT_DATA__" type="application/json">${state}</script>`
    const { markdown, metadata } = read(page)
    expect(markdown).toMatch(/^Water is heated[^]*\n\nMilk is heated/)
    expect(metadata.warnings).toEqual([])
    expect(read(sitePage(ARTICLE, page)).markdown).not.toContain('<p>')
  })

  it.each([
    ['nothing', '<div id=root></div>'],
    ['a plea for scripts', '<noscript>You need to enable JavaScript to run this app.</noscript><div id=root></div>'],
    ['that it loads', '<div id=root><p>Loading…</p></div>'],
  ])('answers with title, description and a warning for an application that shows %s', (_what, html) => {
    const head = '<title>Drinks</title><meta name=description content="All about drinks."><script src=app.js></script>'
    const { markdown, metadata } = read(`${head}<body>${html}`)
    expect(markdown).toBe('# Drinks\n\nAll about drinks.\n')
    expect(metadata.warnings.map(({ code }) => code)).toEqual(['scripts_needed'])
  })

  it('says how many pictures and formulas of the content it cannot read', () => {
    const picture = (size: number, more = ''): string => `<img src="data:image/png;base64,${'A'.repeat(size)}" ${more}>`
    const katex = (inner: string): string =>
      `<span class="katex">${inner}<span class="katex-html" aria-hidden="true">x</span></span>`
    const codes = (html: string): unknown =>
      read(sitePage(`${ARTICLE}<p>So it is: ${html}, mostly.</p>${ARTICLE}`)).metadata.warnings
    expect(codes(`${picture(2000)} ${picture(90_000)} ${katex('')} <img class=tex src=f.png>`)).toEqual([
      { code: 'pictures_dropped', message: '2 pictures have neither an address nor a description.' },
      { code: 'equations_unread', message: '2 formulas are only drawn, without MathML, TeX or a description.' },
    ])
    const math = '<math><mi>x</mi></math>'
    expect(
      codes(
        `${picture(60)} ${picture(2000, 'alt="A pot"')} <img src=a.png> ${katex(math)} <img class=tex alt="x^2" src=f.png>`,
      ),
    ).toEqual([])
  })

  it('warns of no scripts where a page is short', () => {
    expect(read('<script>x()</script><title>T</title><p>Hello there</p>').metadata.warnings).toEqual([])
    expect(read('<p>How to enable JavaScript in a browser</p>').metadata.warnings).toEqual([])
  })

  it('keeps the structure of what a page says to browsers without scripts', () => {
    expect(read('<noscript><h2>Tea</h2><ul><li>green<li>black</ul></noscript>').markdown).toBe(
      '## Tea\n\n- green\n- black\n',
    )
  })

  it('gives what a page says to browsers without scripts when it says nothing else', () => {
    expect(read('<noscript>Please turn on scripts.</noscript><script>app()</script>').markdown).toBe(
      'Please turn on scripts.\n',
    )
  })

  it.each([
    ['one line without markup', 'Hello there', 'Hello there\n'],
    ['one heading', '<h1>Hello</h1>', '# Hello\n'],
    ['links alone', '<ul><li><a href=/a>A</a></li></ul>', '- [A](https://example.org/a)\n'],
  ])('gives %s when that is the page', (_what, html, expected) => {
    expect(read(html).markdown).toBe(expected)
  })

  it.each([['nothing'], ['<img src=a.png>'], ['<script>x()</script>']])(
    'is empty for a page without text: %s',
    (html) => {
      const { markdown, html: cleaned } = read(html === 'nothing' ? '' : html)
      expect({ markdown, cleaned }).toEqual({ markdown: '', cleaned: '' })
    },
  )
})

/** Far above what any of these takes, far below what anything but linear time would take. */
const LIMIT_MS = 5_000

function outcome(html: string): EngineOutput | EngineFault {
  const input = { bytes: new TextEncoder().encode(html), contentType: 'text/html', name: '', baseUrl: 'https://e.org/' }
  try {
    return readHtml(input, { pages: 500, decodedBytes: 25_000_000 })
  } catch (error) {
    if (error instanceof EngineFault) return error
    throw error
  }
}

describe('a page made to hurt', () => {
  it.each([
    ['a million nested elements', '<div>'.repeat(1_000_000)],
    ['a million nested elements with text', '<div>x'.repeat(1_000_000)],
    ['unclosed formatting', '<b>x<i>y'.repeat(100_000)],
    ['nested links', '<a href=x>y'.repeat(25_000)],
    ['nested lists', '<ul><li>x'.repeat(50_000)],
    ['nested tables', '<table><tr><td>x'.repeat(15_000)],
    ['nested quotations of prose', `<blockquote>${'prose, and more of it, '.repeat(6)}`.repeat(20_000)],
    ['end tags of nothing', `${'<div>'.repeat(300)}${'</x>'.repeat(1_000_000)}`],
    ['end tags that open paragraphs', `${'<i>'.repeat(300)}${'</p>'.repeat(100_000)}`],
    ['a million attributes', `<p ${'a=1 '.repeat(1_000_000)}>x`],
    ['an attribute of ten megabytes', `<p class="${'a '.repeat(5_000_000)}">x`],
    ['an attribute of entities', `<p title="${'&amp;'.repeat(300_000)}">x`],
    ['a style of ten megabytes', `<p style="${'display '.repeat(1_200_000)}">x`],
    ['half a million entities', `<p>${'&amp;'.repeat(500_000)}`],
    ['opening brackets', '<'.repeat(1_000_000)],
    ['comments that never end', '<!--'.repeat(1_000_000)],
    ['sections that never end', '<![CDATA['.repeat(300_000)],
    ['declarations that never end', `<!DOCTYPE ${'['.repeat(1_000_000)}`],
    ['ten million blanks', `<p>x${' '.repeat(10_000_000)}y`],
    ['lines', `<p>${'x<br>'.repeat(50_000)}`],
    ['breaks', `<p>${'<br>'.repeat(250_000)}`],
    ['headings', '<h1>a b c</h1>'.repeat(8_000)],
    ['a title and a heading of many words', `<title>${'a '.repeat(500_000)}</title><h1>${'a '.repeat(500_000)}</h1>`],
    ['drawings', '<svg>'.repeat(500_000)],
    ['descriptions', '<meta name=description content="x y">'.repeat(100_000)],
    ['data nested without an end', `<script type="application/ld+json">${'['.repeat(1_000_000)}</script>x`],
    [
      'data below a name of a megabyte',
      `<script type="application/json">{"${'n'.repeat(1_000_000)}":{${Array.from({ length: 15_000 }, (_, n) => `"${n}":"${'Copper carries heat well, as cooks know. '.repeat(3)}"`).join(',')}}}</script>x`,
    ],
    ['classes that are all different', Array.from({ length: 15_000 }, (_, n) => `<p class="nav-${n}">w`).join('')],
    ['pictures', '<img src=a.png>'.repeat(200_000)],
    ['pictures for browsers without scripts', '<noscript><img src=a.png></noscript>'.repeat(50_000)],
  ])(
    'is answered: %s',
    (_what, html) => {
      const startedAtMs = cpuMs()
      const result = outcome(html)
      expect(cpuMs() - startedAtMs).toBeLessThan(LIMIT_MS)
      if (result instanceof EngineFault) expect(result.fault).toBe('too_large')
    },
    LIMIT_MS * 6,
  )

  it('is refused when it has more elements than the limit', () => {
    expect(outcome('<p>x'.repeat(1_000_000))).toBeInstanceOf(EngineFault)
  })
})

const TAGS =
  'a b div p ul li table tr td th h1 h2 span script style svg noscript pre math img br article nav form title'.split(
    ' ',
  )
const ATTRIBUTES = [
  'onclick="alert(1)"',
  'href="javascript:alert(1)"',
  'href=" java\tscript:alert(1)"',
  'href="&#106;avascript:alert(1)"',
  "href='data:text/html,<script>'",
  'src="javascript:alert(1)"',
  'style="display:none"',
  'class="content nav"',
  'hidden',
  'title="<script>&quot;"',
  '"=\'>',
]
const piece = fc.oneof(
  fc.constantFrom(...TAGS).map((tag) => `</${tag}>`),
  fc.tuple(fc.constantFrom(...TAGS), fc.constantFrom('', ...ATTRIBUTES)).map(([tag, text]) => `<${tag} ${text}>`),
  fc.constantFrom(
    'A long enough line of text, with commas, that may well be content of the page. ',
    'x',
    ' ',
    '&lt;script&gt;',
    '<!--',
    '-->',
    '<![CDATA[',
    ']]>',
    '<',
    '"',
  ),
  fc.string(),
)
const pages = fc.array(piece, { maxLength: 60 }).map((pieces) => pieces.join(''))

describe('any page at all', () => {
  it('is read without an error of ours, the same way every time', () => {
    fc.assert(
      fc.property(pages, (html) => {
        expect(outcome(html)).toEqual(outcome(html))
      }),
    )
  })

  it('leaves nothing in its cleaned markup that runs', () => {
    fc.assert(
      fc.property(pages, (html) => {
        const result = outcome(html)
        if (result instanceof EngineFault) return
        expect(result.html).not.toMatch(/<(?:script|style|iframe|object|embed|form|svg|link|meta)\b/i)
        for (const node of descendantsOf(readTree(result.html).body)) {
          if (!(node instanceof HtmlElement)) continue
          for (const [name, value] of node.attributes) {
            expect(name).not.toMatch(/^on|^style$/)
            if (name === 'href' || name === 'src') expect(value).not.toMatch(/^\W*(?:j\W*a\W*v\W*a\W*script|data)\W*:/i)
          }
        }
      }),
    )
  })
})

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

  it.each([
    ['of its root', '<html lang="zh-hans-cn"><meta property="og:locale" content="en_US">', 'zh-Hans-CN'],
    ['of an XHTML root', '<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="de">', 'de'],
    ['of its header', '<meta http-equiv="Content-Language" content="fr">', 'fr'],
    ['of its preview', '<html lang="no such tag"><meta property="og:locale" content="pt_br">', 'pt-BR'],
    ['that is none', '<html lang="">', ''],
  ])('shows the language %s', (_what, html, language) => {
    expect(metadataOf(html).language).toBe(language)
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
