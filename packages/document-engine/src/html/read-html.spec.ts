import { describe, expect, it } from '@jest/globals'
import type { EngineOutput } from '../model/document.js'
import { readHtml } from './read-html.js'

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
