import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { htmlText } from '../scores/html-text.mjs'
import { readMarkdown } from '../scores/read-markdown.mjs'
import { shingleScore, shingleShares } from '../scores/shingles.mjs'
import { textOfBlocks } from '../scores/structure.mjs'
import { wordF1 } from '../scores/word-f1.mjs'
import { mean, wordsOf } from '../scores/words.mjs'
import { figure, memoryFigure, timeFigures } from './figures.mjs'

const LIMIT_MS = 15_000
const TITLES = {
  aeb: 'Article extraction benchmark',
  dev: 'Web content benchmark, dev',
  test: 'Web content benchmark, test',
}
const jsonOf = (path) => JSON.parse(readFileSync(path, 'utf8'))

/** Pages of the two layouts: {name, file, url, truth, kind}. */
function articlePages(directory) {
  return Object.entries(jsonOf(join(directory, 'ground-truth.json'))).map(([name, { articleBody = '', url = '' }]) => {
    return { name, file: join(directory, 'html', `${name}.html.gz`), url, truth: articleBody, kind: 'article' }
  })
}

function kindOf({ _internal: internal }) {
  const kind = internal?.page_type?.primary ?? internal?.page_type ?? 'article'
  return kind === 'category' ? 'collection' : String(kind)
}

function webPages(directory) {
  return readdirSync(join(directory, 'ground-truth'))
    .filter((file) => file.endsWith('.json'))
    .map((file) => {
      const about = jsonOf(join(directory, 'ground-truth', file))
      const name = file.slice(0, -'.json'.length)
      const truth = about.ground_truth?.main_content ?? ''
      return {
        name,
        file: join(directory, 'html', `${name}.html.gz`),
        url: about.url ?? '',
        truth,
        kind: kindOf(about),
      }
    })
}

async function readPage(reader, page) {
  const bytes = gunzipSync(readFileSync(page.file))
  const input = { bytes, contentType: 'text/html; charset=utf-8', name: page.name, baseUrl: page.url }
  const { output, ms, cpuMs, ...failure } = await reader.read(input, LIMIT_MS)
  const text = htmlText(output?.html ?? '')
  const markdown = textOfBlocks(readMarkdown(output?.markdown ?? '').blocks)
  const score = (read) => ({ shares: shingleShares(page.truth, read), words: wordF1(page.truth, read) })
  return {
    name: page.name,
    kind: page.kind,
    ms,
    cpuMs,
    html: score(text),
    markdown: score(markdown),
    isEmpty: wordsOf(page.truth).length > 0 && wordsOf(text).length === 0,
    failure: output ? undefined : JSON.stringify(failure),
  }
}

const shingles = (pages, of) => shingleScore(pages.map((page) => page[of].shares)).f1
const words = (pages, of) => mean(pages.map((page) => page[of].words))

function articleFigures(pages) {
  return [
    figure('shingle F1', shingles(pages, 'html'), { least: 0.965 }),
    figure('shingle F1 of the Markdown', shingles(pages, 'markdown')),
  ]
}

function webFigures(pages) {
  const kinds = [...new Set(pages.map(({ kind }) => kind))].sort()
  const of = (kind) => pages.filter((page) => page.kind === kind)
  return [
    ...kinds.map((kind) =>
      figure(`word F1, ${of(kind).length} ${kind}`, words(of(kind), 'html'), kind === 'article' ? { least: 0.91 } : {}),
    ),
    figure('word F1, all', words(pages, 'html')),
    figure('word F1 of the Markdown, all', words(pages, 'markdown')),
  ]
}

async function measure(reader, name, pages, figuresOf) {
  const read = []
  for (const page of pages) read.push(await readPage(reader, page))
  const figures = [
    ...figuresOf(read),
    figure('pages read as empty', read.filter(({ isEmpty }) => isEmpty).length, { most: 0 }),
    ...timeFigures(read, { most: 40 }),
    memoryFigure(reader),
  ]
  return { title: `${TITLES[name]}: ${pages.length} pages`, isOwn: false, figures, documents: read }
}

/**
 * Reads the public pages below `directory`, every `step`th of them: a corpus that is not there is {title, isAbsent: true}.
 */
export async function measurePublicHtml(reader, directory, step) {
  const places = [
    ['aeb', join(directory, 'aeb'), articlePages, articleFigures],
    ['dev', join(directory, 'wcxb', 'dev'), webPages, webFigures],
    ['test', join(directory, 'wcxb', 'test'), webPages, webFigures],
  ]
  const results = []
  for (const [name, place, pagesOf, figuresOf] of places) {
    if (!existsSync(place)) results.push({ title: TITLES[name], isAbsent: true })
    else {
      const pages = pagesOf(place).filter((_, index) => index % step === 0)
      results.push(await measure(reader, name, pages, figuresOf))
    }
  }
  return results
}
