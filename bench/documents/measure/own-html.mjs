import { makePage, PAGES } from '../html/corpus.mjs'
import { scoreDocument, summarised } from '../scores/document-score.mjs'
import { htmlText } from '../scores/html-text.mjs'
import { lostParagraphs } from '../scores/lost-paragraphs.mjs'
import { shingleScore, shingleShares } from '../scores/shingles.mjs'
import { readMarkdown } from '../scores/read-markdown.mjs'
import { textOfBlocks } from '../scores/structure.mjs'
import { wordF1 } from '../scores/word-f1.mjs'
import { mean } from '../scores/words.mjs'
import { figure, memoryFigure, timeFigures } from './figures.mjs'

const LIMIT_MS = 15_000
const WARM_UP_PAGES = 5

/** What one page of our own making is worth, read as {html, markdown}. */
export function scorePage(page, output) {
  const truth = textOfBlocks(page.blocks)
  const text = htmlText(output.html)
  return {
    ...scoreDocument(page, output.markdown),
    shares: shingleShares(truth, text),
    words: wordF1(truth, text),
    paragraphs: lostParagraphs(page.blocks, textOfBlocks(readMarkdown(output.markdown).blocks)),
    isEmpty: output.markdown.trim() === '' || text.trim() === '',
  }
}

/** Figures of pages {score} against the bars. */
export function htmlFigures(pages) {
  const scores = pages.map(({ score }) => score)
  const all = summarised(scores)
  const sum = (name) => scores.reduce((total, { paragraphs }) => total + paragraphs[name], 0)
  return [
    figure('shingle F1 of the main content', shingleScore(scores.map(({ shares }) => shares)).f1, { least: 0.965 }),
    figure('word F1 of the main content', mean(scores.map(({ words }) => words)), { least: 0.91 }),
    figure('pages read as empty', scores.filter(({ isEmpty }) => isEmpty).length, { most: 0 }),
    figure('share of paragraphs lost', sum('lost') / sum('truth'), { most: 0.005 }),
    figure('text similarity of the Markdown', all.similarity),
    figure('heading F1', all.headingF1, { least: 0.95 }),
    figure('heading F1 with levels', all.headingLevelF1),
    figure('list item recall', all.itemRecall, { least: 0.95 }),
    figure('list item recall with depth', all.itemDepthRecall),
    figure('TEDS of tables', all.ruledTables, { least: 0.85 }),
    figure('tables that are none', all.spuriousTables),
    figure('programs read to the character', all.codeRecall),
    figure('programs with their language', all.codeLanguageRecall),
    figure('links, made absolute', all.linkRecall),
  ]
}

/** Reads the pages of our own making: {title, isOwn, figures, documents}. */
export async function measureOwnHtml(reader) {
  const pages = []
  const made = PAGES.map(makePage)
  for (const [index, page] of [...made.slice(0, WARM_UP_PAGES), ...made].entries()) {
    const input = { bytes: page.bytes, contentType: page.contentType, name: page.name, baseUrl: page.url }
    const answer = await reader.read(input, LIMIT_MS)
    if (index < WARM_UP_PAGES) continue
    const score = scorePage(page, answer.output ?? { html: '', markdown: '' })
    pages.push({
      name: page.name,
      ms: answer.ms,
      cpuMs: answer.cpuMs,
      score,
      failure: answer.output ? undefined : JSON.stringify(answer),
    })
  }
  const figures = [...htmlFigures(pages), ...timeFigures(pages, { most: 40 }), memoryFigure(reader)]
  return { title: `Pages of our own making: ${pages.length}`, isOwn: true, figures, documents: pages }
}
