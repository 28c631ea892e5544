import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { cpuMs } from '../../../../test/support/cpu-time.js'
import { EngineFault, type EngineOutput } from '../model/document.js'
import { descendantsOf, HtmlElement } from './html-node.js'
import { readTree } from './html-parser.js'
import { readHtml } from './read-html.js'

/** Far above what any of these takes, far below what anything but linear time would take. */
const LIMIT_MS = 10_000

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
    ['unclosed formatting', '<b>x<i>y'.repeat(200_000)],
    ['nested links', '<a href=x>y'.repeat(50_000)],
    ['nested lists', '<ul><li>x'.repeat(100_000)],
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
    ['breaks', `<p>${'<br>'.repeat(500_000)}`],
    ['headings', '<h1>a b c</h1>'.repeat(15_000)],
    ['a title and a heading of many words', `<title>${'a '.repeat(500_000)}</title><h1>${'a '.repeat(500_000)}</h1>`],
    ['drawings', '<svg>'.repeat(500_000)],
    ['descriptions', '<meta name=description content="x y">'.repeat(200_000)],
    ['data nested without an end', `<script type="application/ld+json">${'['.repeat(1_000_000)}</script>x`],
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

  it('is refused when it has more elements than anybody reads', () => {
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
