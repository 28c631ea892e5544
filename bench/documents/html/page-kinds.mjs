import {
  code,
  heading,
  item,
  list,
  paragraph,
  piece,
  table,
  toLinks,
  toMarkdown,
  toScoredBlocks,
} from '../text/blocks.mjs'
import { makeDocument } from '../text/document-maker.mjs'
import { escapeHtml } from './render-blocks.mjs'

const some = (count, make) => Array.from({ length: count }, (_, index) => make(index))
const ADDRESS = 'https://www.example.org'

/** Gives some tables cells over two columns or rows: their text belongs to the first column, or to every row. */
function withSpans(random, block) {
  if (block.type !== 'table' || block.header.length < 3 || block.rows.length < 4 || random.chance(0.5)) return block
  const rows = block.rows.map((cells) => [...cells])
  const lastButOne = block.header.length - 2
  rows[1][lastButOne + 1] = ''
  rows.at(-1)[0] = rows.at(-2)[0]
  const spans = [
    { row: 1, column: lastButOne, columns: 2 },
    { row: rows.length - 2, column: 0, rows: 2 },
  ]
  return { ...block, rows, spans }
}

function written(random, plan, extras) {
  const document = makeDocument({ ...plan, columns: 1, links: true, extras, tables: ['grid'], codeLanguage: 'python' })
  const [title, , ...rest] = document
  return [title, ...rest].map((block) => withSpans(random, block))
}

function article({ random, prose, plan, writer, around }) {
  const blocks = written(random, plan, ['list', 'table'])
  const [title, ...rest] = blocks
  const half = rest.length >> 1
  const byline = `<div class="byline"><span class="author">${prose.person()}</span> <time datetime="2024-03-01">1 March 2024</time></div>`
  const parts = [writer.write(rest.slice(0, half)), writer.write(rest.slice(half))]
  const between = `${around.lazyImage()}\n${around.readAlso()}`
  const body = plan.quirks.splitsBody
    ? `<div>${parts[0]}</div>\n${between}\n<div>${parts[1]}</div>`
    : parts.join(`\n${between}\n`)
  return { blocks, html: `${writer.heading(title)}\n${byline}\n<div class="article-body">${body}</div>` }
}

function documentation({ random, plan, writer, around }) {
  const blocks = written(random, plan, ['code', 'list', 'table'])
  return { blocks, html: `${around.contents()}<div class="body" role="main">${writer.write(blocks)}</div>` }
}

function postHtml(blocks, index, { prose, writer }) {
  const author = `<div class="post-author"><a class="username" href="/u/${index}">${prose.person()}</a><span class="rank">Member</span></div>`
  const actions =
    '<div class="post-actions"><a href="#like">Like</a> <a href="#quote">Quote</a> <a href="#report">Report</a></div>'
  return `<div class="post" id="p${index}">${author}<div class="post-content">${writer.write(blocks)}</div>${actions}</div>`
}

/** From one sentence to two paragraphs a post, as people write. */
function forum({ random, prose, writer }) {
  const title = heading(1, `${prose.heading()}?`)
  const posts = some(random.integer(5, 10), (index) => [
    paragraph(prose.paragraph(random.integer(1, 3))),
    ...(index % 3 === 1 ? [code('python', prose.program())] : []),
    ...(random.chance(0.4) ? [paragraph(prose.paragraph(random.integer(1, 3)))] : []),
  ])
  const html = posts.map((blocks, index) => postHtml(blocks, index, { prose, writer })).join('\n')
  return {
    blocks: [title, ...posts.flat()],
    html: `${writer.heading(title)}<div class="thread posts">${html}</div>`,
  }
}

function product({ random, prose, writer, around }) {
  const title = heading(1, `${prose.label()} ${random.integer(100, 900)}`)
  const price = paragraph(`€ ${random.integer(20, 900)}.00`)
  const about = some(2, () => paragraph(prose.paragraph(2)))
  const features = [
    heading(2, 'Features'),
    list(
      false,
      some(5, () => item(prose.item())),
    ),
  ]
  const rows = some(6, () => [prose.label(), `${prose.number()} ${prose.unit()}`])
  const details = [heading(2, 'Specifications'), table('grid', ['Property', 'Value'], rows)]
  const gallery = `<div class="gallery">${around.lazyImage()}${around.lazyImage()}</div>`
  const summary = `<div class="summary">${writer.heading(title)}<div class="price">${writer.write([price])}</div><button class="add-to-cart">Add to basket</button></div>`
  const description = `<div class="product-description">${writer.write([...about, ...features])}</div>`
  return {
    blocks: [title, price, ...about, ...features, ...details],
    html: `<div class="product-page">${gallery}${summary}${description}<div class="specs">${writer.write(details)}</div></div>`,
  }
}

function listing({ random, prose, writer }) {
  const title = heading(1, `All about ${prose.thing()}`)
  const introduction = paragraph(prose.paragraph(2))
  const entries = some(random.integer(8, 14), () => {
    const url = `${ADDRESS}/story/${prose.identifier()}`
    return [
      { type: 'heading', level: 2, content: [piece(prose.heading(), { url })] },
      paragraph(prose.paragraph(random.integer(1, 2))),
    ]
  })
  const html = entries.map((blocks) => `<div class="entry">${writer.write(blocks)}</div>`).join('\n')
  const pages =
    '<div class="pagination"><a href="?page=1">1</a> <a href="?page=2">2</a> <a href="?page=2">Next page</a></div>'
  return {
    blocks: [title, introduction, ...entries.flat()],
    html: `${writer.write([title, introduction])}<div class="entries">${html}</div>${pages}`,
  }
}

/** A chapter as generators of manuals write XHTML: open anchors, hidden pieces, lists of terms, tables of members. */
function manual({ random, prose }) {
  const title = heading(1, prose.heading())
  const chapters = some(3, () => ({
    heading: heading(2, prose.heading()),
    texts: some(2, () => paragraph(prose.paragraph(3))),
    terms: some(4, () => ({ term: prose.label(), definition: prose.sentence() })),
    members: some(4, () => [prose.unit(), `${prose.identifier()}(${random.integer(1, 9)})`]),
  }))
  const anchor = () => `<a class="indexterm" id="i${random.integer(1, 99_999)}"/>`
  const hidden = () => `<span style="display: none;">${random.integer(1, 90)}.5; ${random.integer(1, 90)}.25</span>`
  const html = chapters.map((chapter, index) => {
    const texts = chapter.texts.map((text) => `<p>${anchor()}${escapeHtml(text.content[0].text)}${hidden()}</p>`)
    const terms = chapter.terms.map(
      ({ term, definition }) =>
        `<dt>${anchor()}<b>${escapeHtml(term)}</b></dt><dd><p>${escapeHtml(definition)}</p></dd>`,
    )
    const rows = chapter.members.map(
      ([type, name]) =>
        `<tr><td>${escapeHtml(type)}</td><td><a href="/member/${index}">${escapeHtml(name)}</a></td></tr>`,
    )
    const top = `<tr><td colspan="2"><h2>${anchor()}${escapeHtml(chapter.heading.content[0].text)}</h2></td></tr>`
    return `<div class="sect1"><table class="memberdecls">${top}${rows.join('')}</table>${texts.join('')}<dl>${terms.join('')}</dl></div>`
  })
  const blocks = chapters.flatMap(({ heading: top, texts, terms, members: [header, ...rows] }) => [
    top,
    table('grid', header, rows),
    ...texts,
    list(
      false,
      terms.map(({ term, definition }) => item(`${term}: ${definition}`)),
    ),
  ])
  return {
    blocks: [title, ...blocks],
    html: `<div class="chapter"><h1>${anchor()}${escapeHtml(title.content[0].text)}</h1>${html.join('\n')}</div>`,
  }
}

/** What a version changes, in short lines. */
function changeLog({ prose, writer }) {
  const versions = some(5, (index) => [
    heading(2, `Version ${9 - index}.0`),
    list(
      false,
      some(5, () => item(prose.item())),
    ),
  ])
  const blocks = [heading(1, 'Changes'), ...versions.flat()]
  return { blocks, html: `<div class="section" id="recent-changes">${writer.write(blocks)}</div>` }
}

/** A page that waits for its script, with its text in the state of the application. */
function application({ prose }) {
  const texts = some(4, () => prose.paragraph(3))
  const body = texts.map((text) => ({ type: 'text', value: text }))
  const state = JSON.stringify({ props: { pageProps: { body, menu: ['Home', 'About'] } } }).replaceAll('<', '\\u003c')
  return {
    blocks: texts.map((text) => paragraph(text)),
    html: `<div id="__next">Loading…</div><script id="__NEXT_DATA__" type="application/json">${state}</script>`,
  }
}

const KINDS = { article, documentation, forum, product, listing, manual, changeLog, application }

/** The main content of a page of a kind and what it says: {html, title, markdown, blocks, links}. */
export function mainContent(kind, context) {
  const { blocks, html } = KINDS[kind](context)
  return {
    html,
    title: blocks[0].content[0].text,
    markdown: toMarkdown(blocks),
    blocks: toScoredBlocks(blocks),
    links: toLinks(blocks),
  }
}
