import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { Parser } from 'htmlparser2'
import MarkdownIt from 'markdown-it'
import { Marked } from 'marked'
import {
  presentationFile,
  relations,
  slideParagraph,
  slideShape,
  WORD,
  wordFile,
  workbookFile,
  zipOf,
} from '../../../test/support/office-files.js'
import {
  markdownOf as pagesMarkdown,
  type PageMaker,
  pdfOf,
  proseLines,
  textAt,
} from '../../../test/support/pdf-files.js'
import { readDocument } from './engine.js'

async function markdownOf(content: string | Uint8Array, contentType = '', baseUrl = ''): Promise<string> {
  const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content
  const input = { bytes, contentType, name: '', baseUrl }
  return (await readDocument(input, { pages: 50, decodedBytes: 5_000_000 })).markdown
}

const RENDERERS: Readonly<Record<string, (markdown: string) => string>> = {
  marked: (markdown) => new Marked({ async: false }).parse(markdown, { async: false }),
  'marked without GFM': (markdown) => new Marked({ async: false, gfm: false }).parse(markdown, { async: false }),
  'markdown-it': (markdown) => new MarkdownIt({ html: true }).render(markdown),
  'markdown-it with bare links': (markdown) => new MarkdownIt({ html: true, linkify: true }).render(markdown),
}

const ELEMENTS = new Set(
  (
    'a blockquote br code del em h1 h2 h3 h4 h5 h6 hr img input li ol p pre s strong sub sup table tbody td th thead tr ' +
    'ul'
  ).split(' '),
)
const ATTRIBUTES: Readonly<Record<string, RegExp>> = {
  href: /^/,
  src: /^/,
  alt: /^/,
  title: /^/,
  align: /^(?:left|center|right)$/,
  style: /^text-align:(?:left|center|right)$/,
  class: /^language-[\w+#.-]{1,30}$/,
  start: /^\d{1,9}$/,
  type: /^checkbox$/,
  checked: /^$/,
  disabled: /^$/,
}
const SCHEMES = new Set(['http:', 'https:', 'mailto:', 'tel:', 'ftp:'])
/** Of the page that shows the Markdown. */
const PAGE = 'https://page.example/'
const REMARK = /^ (?:page|slide) \d+ $/

/** What a browser would get beyond the markup that Markdown has: elements, attributes and addresses. */
function liveHtml(html: string): string[] {
  const found: string[] = []
  const parser = new Parser({
    onopentag(name, attributes) {
      if (!ELEMENTS.has(name)) found.push(`<${name}>`)
      for (const [attribute, value] of Object.entries(attributes)) {
        const isAddress = (attribute === 'href' || attribute === 'src') && /:./.test(value) && URL.canParse(value, PAGE)
        if (ATTRIBUTES[attribute]?.test(value) !== true) found.push(`${attribute}=${value}`)
        if (isAddress && !SCHEMES.has(new URL(value, PAGE).protocol)) found.push(value)
      }
    },
    oncomment(text) {
      if (!REMARK.test(text)) found.push(`<!--${text}-->`)
    },
    onprocessinginstruction(_name, data) {
      found.push(`<${data}>`)
    },
  })
  parser.end(html)
  return found
}

function expectNoLiveHtml(markdown: string): void {
  for (const [renderer, render] of Object.entries(RENDERERS)) {
    const live = liveHtml(render(markdown))
    if (live.length > 0) throw new Error(`${renderer} makes ${live.join(' ')} of ${JSON.stringify(markdown)}`)
  }
}

const xml = (text: string): string =>
  text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`).replace(/[^\P{Cc}\n]/gu, ' ')

const TAG = '<img src=x onerror=alert(1)>'
const LINK = '[x](javascript:alert(1))'
const math = (tex: string, display = 'inline'): string =>
  `<math display="${display}" alttext="${xml(tex)}"><mi>x</mi></math>`
const link = (href: string, text = 'x'): string => `<a href="${xml(href)}">${text}</a>`

const cell = (content: string): string => `<table><tr><th>a<th>b<tr><td>${content}<td>b</table>`

const RUN = (text: string): string => `<w:r><w:t xml:space="preserve">${xml(text)}</w:t></w:r>`
const REFERENCE = '<w:r><w:footnoteReference w:id="2"/></w:r>'

function wordWithLink(target: string, text: string): Uint8Array {
  return wordFile(`<w:p><w:hyperlink r:id="r1" xmlns:r="${OFFICE}">${RUN(text)}</w:hyperlink></w:p>`, {
    'word/_rels/document.xml.rels': relations([{ id: 'r1', type: 'hyperlink', target: xml(target), isExternal: true }]),
  })
}

const OFFICE = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'

function wordWithNote(body: string, note: string): Uint8Array {
  return wordFile(body, {
    'word/_rels/document.xml.rels': relations([{ id: 'r1', type: 'footnotes', target: 'footnotes.xml' }]),
    'word/footnotes.xml': `<w:footnotes ${WORD}><w:footnote w:id="2"><w:p>${RUN(note)}</w:p></w:footnote></w:footnotes>`,
  })
}

function slideWithLink(target: string, text: string): Uint8Array {
  const run = `<a:p><a:r><a:rPr><a:hlinkClick r:id="r1"/></a:rPr><a:t>${xml(text)}</a:t></a:r></a:p>`
  return presentationFile([
    {
      shapes: slideShape(run),
      relations: [{ id: 'r1', type: 'hyperlink', target: xml(target), isExternal: true }],
    },
  ])
}

const inlineCell = (reference: string, text: string): string =>
  `<c r="${reference}" t="inlineStr"><is><t>${xml(text)}</t></is></c>`

function sheetWithLink(target: string, ...texts: readonly string[]): Uint8Array {
  const cells = texts.map((text, index) => inlineCell(`${'ABCDEFGH'.charAt(index)}1`, text))
  return workbookFile([
    {
      name: xml(texts[0] ?? 'S'),
      content: `<sheetData><row>${cells.join('')}</row></sheetData><hyperlinks><hyperlink ref="A1" r:id="r1"/></hyperlinks>`,
      relations: [{ id: 'r1', type: 'hyperlink', target: xml(target), isExternal: true }],
    },
  ])
}

const csv = (rows: readonly (readonly string[])[]): string =>
  rows.map((row) => row.map((value) => `"${value.replaceAll('"', '""')}"`).join(',')).join('\n')

const pdfTable = (cells: readonly string[], look: Parameters<PageMaker['row']>[3] = {}): string =>
  pagesMarkdown((page) =>
    page
      .lines(proseLines(20, 40), 50, 200)
      .grid([50, 250, 450], [100, 120, 140])
      .row(['Name', 'Text'], [55, 255], 114)
      .row(cells, [55, 255], 134, look),
  )

const pdfLink = (url: string, text: string): string =>
  pagesMarkdown((page) => page.text(text, 50, 100).link(45, 88, text.length * 5 + 10, 16, url))

describe('The Markdown of a hostile document has nothing live when it is rendered with its HTML', () => {
  it.each<[string, string | Uint8Array, string?]>([
    ['a telephone number with a script', link('tel:1 <script>alert(1)</script>')],
    ['a mail address with a picture', link(`mailto:a ${TAG}`)],
    ['a mail address with a title that ends early', link(`mailto:a "${TAG}`)],
    ['a mail address for its own text', link(`mailto:a"${TAG}`, xml(`mailto:a"${TAG}`))],
    ['a formula with a tag', math(TAG)],
    ['a formula with a dollar before a tag', math(`a$ ${TAG} $b`)],
    ['a formula with a script between dollars', `<script type="math/tex">a$<b>${TAG}</b>$b</script><p>x`],
    ['a formula with a backtick before code', `<p>a ${math('`')} <code>${xml(`x ${TAG}`)}</code>`],
    ['a formula with a link', math(`\\text{${LINK}}`)],
    ['a formula with an address before a tag', `<p>a ${math('http://e.org/')}${xml(TAG)}`],
    ['a formula with an address in bold before a tag', `<p>${math('www.e.org')}<b>${xml(TAG)}</b>`],
    ['a formula of its own that opens a fence', `${math('~~~', 'block')}<pre>${xml(`~~~\n${TAG}`)}</pre>`],
    ['a formula of its own with a tag', math(`a ${TAG}`, 'block')],
    ['an operator of MathML with a tag', `<math><mo>${xml(TAG)}</mo></math>`],
    ['a text of MathML with a link', `<math><mtext>${LINK}</mtext></math>`],
    [
      'an annotation of MathML',
      `<math><annotation encoding="application/x-tex">${xml(`$${TAG}$`)}</annotation></math>`,
    ],
    ['a picture of a formula', `<img class="tex" alt="${xml(`$a$ ${TAG} $b$`)}">`],
    ['TeX between delimiters', `<span class="math">\\(a$ ${xml(TAG)}\\)</span>`],
    ['a text that opens a fence', `<p>~~~ x<pre>${xml(`a\n~~~\n${TAG}`)}</pre>`],
    ['a bare address with brackets', `<p>www.e.org${LINK}`],
    ['an address whose text is a link', link(`tel:1${LINK}${TAG}`, `${LINK}${xml(TAG)}`)],
    ['an address whose text is code', link(`https://e.org/${TAG}`, `<code>\`\`\`</code></a><a href=/>${xml(TAG)}`)],
    ['code with brackets behind an open bracket', `<p>[x <code>]${xml(TAG)}](javascript:alert(1))</code>`],
    [
      'code with a backtick behind an open bracket in a formula',
      `<p>${math('[a')}<code>\`](javascript:alert(1))</code>`,
    ],
    ['code with a bracket behind an address', `<p>http://e.org/<code>[#</code><i>a b</i><code>${xml(TAG)}</code>`],
    ['code behind an address', `<p>http://e.org/<code>: x</code>${xml(TAG)}<code>z</code>`],
    ['an address with a bracket over two lines of a cell', cell(`http://e.org/[<br>a]${xml(TAG)}`)],
    ['an address with a bracket over two blocks of a cell', cell(`<p>http://e.org/[<p>a]${xml(TAG)}`)],
    ['an address with a bracket around a comparison', `<p>http://e.org/(1&lt;2)${xml(TAG)}`],
    [
      'a list of values with an address over two lines',
      csv([
        ['a', 'b'],
        [`http://e.org/[\na]${TAG}`, 'b'],
      ]),
      'text/csv',
    ],
    ['a definition over two lines', `<p>[a<br>b]: javascript:alert(1)<p>[a<br>b]`],
    ['a formula in a cell', `<table><tr><th>a<th>b<tr><td>${math(`|a| ${TAG}`)}<td>${math('`')}</table>`],
    ['a Word document with a link', wordWithLink(`mailto:a ${TAG}`, 'x')],
    ['a Word document with marks of notes', wordFile(`<w:p>${RUN('\ufdd0\ufdd1(javascript:alert(1))')}</w:p>`)],
    [
      'a Word document with a note before parentheses',
      wordWithNote(`<w:p>${REFERENCE}${RUN('(javascript:alert(1))')}</w:p>`, 'note'),
    ],
    [
      'a Word document with a note before a colon',
      wordWithNote(`<w:p>${REFERENCE}${RUN(': javascript:alert(1)')}</w:p>`, 'note'),
    ],
    [
      'a Word document with a note that is an address',
      wordWithNote(`<w:p>${RUN('word')}${REFERENCE}</w:p>`, 'javascript:alert(1)'),
    ],
    [
      'a Word document with a note that is a longer address',
      wordWithNote(`<w:p>${RUN('word')}${REFERENCE}</w:p>`, 'javascript://e.org/%0aalert(1)'),
    ],
    ['a presentation with a link', slideWithLink(`mailto:a"${TAG.replaceAll(' ', '\u00a0')}`, TAG)],
    ['a sheet with a link', sheetWithLink(`mailto:a"${TAG.replaceAll(' ', '/')}`, `${LINK}[`)],
    [
      'a list of values',
      csv([
        [TAG, LINK],
        [`\\${TAG}`, `a\\\n${TAG}`],
      ]),
      'text/csv',
    ],
  ])('%s', async (_what, content, type = typeof content === 'string' ? 'text/html' : '') => {
    const isPage = type === 'text/html' && typeof content === 'string'
    expectNoLiveHtml(await markdownOf(isPage ? `<p>word</p>${content}` : content, type, isPage ? 'https://e.org/' : ''))
  })

  it.each<[string, string]>([
    ['an address for its own text', pdfLink(`https://a](javascript:alert(1))[`, `a](javascript:alert(1))[`)],
    ['an address with quotes', pdfLink(`mailto:a"onmouseover="alert(1)`, 'x')],
    ['code with bars behind backslashes', pdfTable(['x', `a \\\\|${TAG}`], { isFixedPitch: true })],
    [
      'a soft hyphen before parentheses',
      pagesMarkdown((page) =>
        page.text('[x]', 50, 100).text('\u00ad', 65, 100, { isBold: true }).text('(javascript:alert(1))', 65, 100),
      ),
    ],
  ])('a PDF with %s', (_what, markdown) => {
    expect(markdown).not.toBe('')
    expectNoLiveHtml(markdown)
  })

  it('a PDF with all of it', async () => {
    const action = `/A << /S /URI /URI (mailto:a${TAG.replaceAll(/[()]/g, '\\$&')}) >>`
    const entries = `/Annots [<< /Type /Annot /Subtype /Link /Rect [90 690 300 720] ${action} >>]`
    const content = textAt(100, 700, `${TAG} ${LINK}`)
    expectNoLiveHtml(await markdownOf(pdfOf({ pages: [{ content, entries }] })))
  })
})

const ATTACKS = [
  TAG,
  LINK,
  '<script>alert(1)</script>',
  '<b',
  '</p',
  '<!-- ',
  '<![CDATA[',
  '<javascript:alert(1)>',
  '](javascript:alert(1))',
  '[a]: javascript:alert(1)',
  ': javascript:alert(1)',
  'http://e.org/',
  'www.e.org',
  'a@b.cd',
  ' onerror=alert(1) ',
  '&lt;',
  '&#60;',
  ...[
    '```',
    '~~~',
    '$$',
    '\\\\',
    '\\|',
    '- ',
    '1. ',
    '---',
    '    ',
    '\u00ad',
    '\ufdd0',
    '\ufdd1',
    '\u200b',
    '\n',
    'word',
  ],
  ...'`$\\|![]()"\'*_~#>=:<& '.split(''),
]
const hostile = fc.array(fc.constantFrom(...ATTACKS), { minLength: 1, maxLength: 6 }).map((parts) => parts.join(''))
const address = fc
  .tuple(fc.constantFrom('tel:1', 'mailto:a', 'https://e.org/', 'javascript:', '', '//e.org/'), hostile)
  .map((parts) => parts.join(''))
/** The annotations of a PDF are judged before its layout. */
const webAddress = address.filter((url) => /^(?:mailto|https):/.test(url))

const node = fc.letrec<{ node: string; nodes: string }>((tie) => {
  const inner = tie('nodes')
  const around = (tag: string, attributes = ''): fc.Arbitrary<string> =>
    inner.map((nodes) => `<${tag}${attributes}>${nodes}</${tag}>`)
  return {
    nodes: fc.array(tie('node'), { maxLength: 4 }).map((nodes) => nodes.join('')),
    node: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      hostile.map(xml),
      fc.tuple(hostile, fc.constantFrom('inline', 'block')).map(([tex, display]) => math(tex, display)),
      hostile.map((text) => `<math><msup><mi>${xml(text)}</mi><mtext>${xml(text)}</mtext></msup></math>`),
      hostile.map((tex) => `<span class="math">$${xml(tex)}$</span>`),
      hostile.map((tex) => `<script type="math/tex">${tex.replaceAll('</', '')}</script>`),
      hostile.map((text) => `<code>${xml(text)}</code>`),
      hostile.map((text) => `<pre><code class="language-${xml(text)}">${xml(text)}</code></pre>`),
      fc.tuple(hostile, address).map(([alt, url]) => `<img alt="${xml(alt)}" src="${xml(url)}">`),
      hostile.map((alt) => `<img class="tex" alt="${xml(alt)}">`),
      address.map((url) => link(url, xml(url))),
      fc.tuple(address, inner).map(([url, nodes]) => link(url, nodes)),
      inner.map((nodes) => `<p>[${nodes}<br>a]: javascript:alert(1)<p>[${nodes}<br>a]`),
      ...['p', 'b', 'i', 's', 'sup', 'sub', 'blockquote', 'ul><li', 'h2', 'q', 'dl><dt', 'li'].map((tag) =>
        around(tag),
      ),
      fc.tuple(inner, inner).map(([left, right]) => `<table><tr><th>a<th>b<tr><td>${left}<td>${right}</table>`),
    ),
  }
}).nodes

/** Of a document that holds no text there is no Markdown. */
async function expectHarmless(content: string | Uint8Array, contentType = '', baseUrl = ''): Promise<void> {
  expectNoLiveHtml(await markdownOf(content, contentType, baseUrl).catch(() => ''))
}

const RUNS = { numRuns: 150 }
const texts = fc.array(hostile, { minLength: 1, maxLength: 5 })

describe('The Markdown of any hostile document has nothing live when it is rendered with its HTML', () => {
  it('if it is a page', () =>
    fc.assert(
      fc.asyncProperty(node, fc.constantFrom('', 'https://e.org/'), (source, baseUrl) =>
        expectHarmless(`<body><p>word</p>${source}</body>`, 'text/html', baseUrl),
      ),
      RUNS,
    ))

  it('if it is a Word document', () =>
    fc.assert(
      fc.asyncProperty(texts, hostile, hostile, address, async (runs, note, code, target) => {
        const body = runs.map((text) => `<w:p>${RUN(text)}${REFERENCE}${RUN(text)}</w:p>`).join('')
        const styled = `<w:p><w:pPr><w:pStyle w:val="Code"/></w:pPr>${RUN(code)}</w:p>`
        await expectHarmless(wordWithNote(`${body}${styled}`, note))
        await expectHarmless(wordWithLink(target, note))
      }),
      RUNS,
    ))

  it('if it is a presentation', () =>
    fc.assert(
      fc.asyncProperty(texts, address, async (lines, target) => {
        await expectHarmless(
          presentationFile([{ shapes: slideShape(lines.map((line) => slideParagraph(xml(line))).join('')) }]),
        )
        await expectHarmless(slideWithLink(target, lines.join('')))
      }),
      RUNS,
    ))

  it('if it is a Word document with equations, comments and headers', () =>
    fc.assert(
      fc.asyncProperty(texts, hostile, hostile, async (parts, author, header) => {
        const runs = parts.map(
          (text) => `<m:r><m:t>${xml(text)}</m:t></m:r><m:r><m:rPr><m:nor/></m:rPr><m:t>${xml(text)}</m:t></m:r>`,
        )
        const comment = '<w:r><w:commentReference w:id="0"/></w:r>'
        const body = `<w:p>${RUN(header)}<m:oMath>${runs.join('')}</m:oMath>${comment}${RUN(header)}</w:p><w:p><m:oMathPara><m:oMath>${runs.join('')}</m:oMath></m:oMathPara></w:p>`
        await expectHarmless(
          wordFile(body, {
            'word/_rels/document.xml.rels': relations([
              { id: 'r1', type: 'comments', target: 'comments.xml' },
              { id: 'r2', type: 'header', target: 'header1.xml' },
            ]),
            'word/comments.xml': `<w:comments ${WORD}><w:comment w:id="0" w:author="${xml(author)}"><w:p>${RUN(header)}</w:p></w:comment></w:comments>`,
            'word/header1.xml': `<w:hdr ${WORD}><w:p>${RUN(header)}</w:p></w:hdr>`,
          }),
        )
      }),
      RUNS,
    ))

  it('if it is an OpenDocument text or a book', () =>
    fc.assert(
      fc.asyncProperty(texts, hostile, address, async (lines, note, target) => {
        const notes = `<text:note><text:note-body><text:p>${xml(note)}</text:p></text:note-body></text:note>`
        const paragraphs = lines.map(
          (line) => `<text:p>${xml(line)}${notes}<text:a xlink:href="${xml(target)}">${xml(note)}</text:a></text:p>`,
        )
        const content = `<office:document-content><office:body><office:text>${paragraphs.join('')}</office:text></office:body></office:document-content>`
        await expectHarmless(zipOf({ mimetype: 'application/vnd.oasis.opendocument.text', 'content.xml': content }))
        await expectHarmless(
          zipOf({
            'META-INF/container.xml': '<container><rootfiles><rootfile full-path="b.opf"/></rootfiles></container>',
            'b.opf':
              '<package><manifest><item id="a" href="a.html" media-type="text/html"/></manifest><spine><itemref idref="a"/></spine></package>',
            'a.html': `<p>${lines.join('<p>')}<img alt="${xml(note)}"/><a href="${xml(target)}">${xml(note)}</a>`,
          }),
        )
      }),
      RUNS,
    ))

  it('if it is rich text or a message', () =>
    fc.assert(
      fc.asyncProperty(texts, hostile, address, async (lines, title, target) => {
        const rtf = (text: string): string =>
          text.replaceAll(/[\\{}]/g, '\\$&').replaceAll(/[^ -~]/g, (character) => `\\u${character.charCodeAt(0)}?`)
        const link = `{\\field{\\*\\fldinst HYPERLINK "${rtf(target)}"}{\\fldrslt ${rtf(title)}}}`
        await expectHarmless(
          `{\\rtf1 ${lines.map((line) => `${rtf(line)}{\\footnote ${rtf(title)}}${rtf(line)}\\par`).join('')}${link}}`,
        )
        const header = (text: string): string => text.replaceAll(/[\r\n]/g, ' ')
        await expectHarmless(
          `MIME-Version: 1.0\nFrom: ${header(title)}\nSubject: ${header(lines.join(''))}\n\n${lines.join('\n')}`,
          'message/rfc822',
        )
      }),
      RUNS,
    ))

  it('if it is a workbook or a list of values', () =>
    fc.assert(
      fc.asyncProperty(texts, address, async (cells, target) => {
        await expectHarmless(sheetWithLink(target, ...cells))
        await expectHarmless(csv([['a', ...cells], cells]), 'text/csv')
      }),
      RUNS,
    ))

  it('if it is a PDF', () => {
    const look = fc.record({ isBold: fc.boolean(), isItalic: fc.boolean(), isFixedPitch: fc.boolean() })
    const run = fc.tuple(hostile, look, fc.constantFrom(0, 0, 12, 40))
    fc.assert(
      fc.property(fc.array(run, { minLength: 1, maxLength: 8 }), webAddress, texts, (runs, url, cells) => {
        const markdown = pagesMarkdown((page) => {
          let [x, y] = [50, 100]
          for (const [text, shape, down] of runs) {
            if (down > 0) [x, y] = [50, y + down]
            page.text(text, x, y, shape)
            x += text.length * 5
          }
          page.link(45, 88, 200, 16, url)
        })
        expectNoLiveHtml(markdown)
        expectNoLiveHtml(pdfTable([cells.join(''), cells[0] ?? ''], runs[0]?.[1]))
      }),
      RUNS,
    )
  })
})
