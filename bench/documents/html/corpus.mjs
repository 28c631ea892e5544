import iconv from 'iconv-lite'
import { Prose } from '../text/prose.mjs'
import { Random } from '../text/random.mjs'
import { TOPICS } from '../text/vocabulary.mjs'
import { Boilerplate } from './boilerplate.mjs'
import { mainContent } from './page-kinds.mjs'
import { BlockWriter, escapeHtml } from './render-blocks.mjs'

const COUNTS = {
  article: 12,
  documentation: 7,
  forum: 6,
  product: 6,
  listing: 5,
  manual: 6,
  changeLog: 3,
  application: 2,
}
const XML = '<?xml version="1.0"?>\n'
const QUIRKS = [
  { relativeLinks: true },
  { omitsEndTags: true, relativeLinks: true },
  { wrapsInDivs: true, splitsBody: true, charset: 'windows-1252' },
  { permalinks: true, relativeLinks: true },
]

/** Every page of the corpus: {name, kind, seed, topic, sections, quirks, isSemantic, isAnonymous}. */
export const PAGES = Object.entries(COUNTS).flatMap(([kind, count], series) =>
  Array.from({ length: count }, (_, index) => ({
    name: `${kind}-${index + 1}`,
    kind,
    seed: 1_000 * (series + 1) + index,
    topic: index % TOPICS.length,
    sections: 2 + (index % 4),
    quirks: QUIRKS[index % QUIRKS.length],
    isSemantic: index % 2 === 0,
    isAnonymous: index % 3 === 2,
  })),
)

function head(title, prose, charset) {
  const description = escapeHtml(prose.sentence())
  return `<head><meta charset="${charset}"><title>${escapeHtml(title)} | The Example Gazette</title><meta name="description" content="${description}"><meta property="og:site_name" content="The Example Gazette"><link rel="icon" href="/favicon.png"><style>.share-bar{color:red}</style></head>`
}

function bodyOf({ isSemantic, kind, quirks }, main, around) {
  if (kind === 'application') return main
  const wrapped = isSemantic
    ? `<main>${kind === 'article' ? `<article>${main}</article>` : main}</main>`
    : `<div class="col-8 css-9f2k">${main}</div>`
  const tooMany = quirks.omitsEndTags ? '</div></span>' : ''
  const after = kind === 'article' ? [around.shareBar(), around.newsletter(), around.comments()] : []
  return [
    around.cookieBanner(),
    around.siteHeader(),
    around.breadcrumbs(),
    `<div class="page-columns">${wrapped}${tooMany}${around.sidebar()}</div>`,
    ...after,
    around.related(),
    around.hidden(),
    around.siteFooter(),
  ].join('\n')
}

/**
 * A page of the corpus: {name, kind, url, contentType, bytes, markdown, blocks, links}, the truth being that of its main
 * content. What its server claims has no charset; the page itself says it.
 */
export function makePage(page) {
  const random = new Random(page.seed)
  const prose = new Prose(random, TOPICS[page.topic])
  const writer = new BlockWriter(random, page.quirks)
  const around = new Boilerplate(prose, random, page)
  const { html, title, ...truth } = mainContent(page.kind, { random, prose, plan: page, writer, around })
  const charset = page.quirks.charset ?? 'utf-8'
  const body = bodyOf(page, html, around)
  const text = `${page.kind === 'manual' ? XML : ''}<!DOCTYPE html>\n<html lang="en">${head(title, prose, charset)}<body>${body}</body></html>\n`
  const url = `https://www.example.org/${page.name}`
  return {
    name: page.name,
    kind: page.kind,
    url,
    contentType: 'text/html',
    bytes: iconv.encode(text, charset),
    ...truth,
  }
}
