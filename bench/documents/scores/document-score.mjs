import { readMarkdown } from './read-markdown.mjs'
import { headingCounts, headingF1, itemCounts, textOfBlocks } from './structure.mjs'
import { pairedTables } from './table-similarity.mjs'
import { textSimilarity } from './text-similarity.mjs'
import { wordF1 } from './word-f1.mjs'
import { counted, mean, normalised, overlap } from './words.mjs'

const codeOf = (blocks) =>
  blocks.flatMap(({ type, text, language }) =>
    type === 'code' ? [{ text: text.replace(/[ \t]+$/gm, '').trimEnd(), language }] : [],
  )

/** Programs of which every character, blanks and line breaks included, came back in one block. */
function codeCounts(truth, read) {
  const [expected, found] = [codeOf(truth), codeOf(read)]
  const common = (keyOf) => overlap(counted(expected.map(keyOf)), counted(found.map(keyOf)))
  return {
    truth: expected.length,
    matched: common(({ text }) => text),
    matchedWithLanguage: common(({ text, language }) => `${language}\n${text}`),
  }
}

function linkCounts(truth, read) {
  const keyOf = ({ text, url }) => `${normalised(text)} ${url}`
  return { truth: truth.length, matched: overlap(counted(truth.map(keyOf)), counted(read.map(keyOf))) }
}

const rowsOf = (blocks) => blocks.flatMap(({ type, rows }) => (type === 'table' ? [rows] : []))

/** What one document read as `markdown` is worth against the truth {blocks, links}. */
export function scoreDocument({ blocks, links }, markdown) {
  const read = readMarkdown(markdown)
  const { similarities, spurious } = pairedTables(rowsOf(blocks), rowsOf(read.blocks))
  const rules = blocks.flatMap((block) => (block.type === 'table' ? [block.rules] : []))
  const [truthText, readText] = [blocks, read.blocks].map(textOfBlocks)
  return {
    similarity: textSimilarity(truthText, readText),
    wordF1: wordF1(truthText, readText),
    headings: headingCounts(blocks, read.blocks),
    items: itemCounts(blocks, read.blocks),
    tables: similarities.map((similarity, index) => ({ rules: rules[index], similarity })),
    spuriousTables: spurious,
    code: codeCounts(blocks, read.blocks),
    links: linkCounts(links, read.links),
  }
}

const total = (scores, part, name) => scores.reduce((sum, score) => sum + score[part][name], 0)
const share = (scores, part, name) => total(scores, part, name) / total(scores, part, 'truth')

/** TEDS of the tables drawn with lines or without; a table read where there is none counts as one without, worth 0. */
function tableFigures(scores) {
  const tables = scores.flatMap((score) => score.tables)
  const spurious = scores.reduce((sum, score) => sum + score.spuriousTables, 0)
  const ruled = tables.filter(({ rules }) => rules !== 'none').map(({ similarity }) => similarity)
  const bare = tables.filter(({ rules }) => rules === 'none').map(({ similarity }) => similarity)
  return { ruledTables: mean(ruled), bareTables: mean([...bare, ...Array(spurious).fill(0)]), spuriousTables: spurious }
}

/** The figures of many such scores; NaN where no document has what a figure is about. */
export function summarised(scores) {
  const headings = scores.map((score) => score.headings)
  return {
    similarity: mean(scores.map(({ similarity }) => similarity)),
    wordF1: mean(scores.map((score) => score.wordF1)),
    headingF1: headingF1(headings),
    headingLevelF1: headingF1(headings, 'matchedWithLevel'),
    itemRecall: share(scores, 'items', 'matched'),
    itemDepthRecall: share(scores, 'items', 'matchedWithDepth'),
    ...tableFigures(scores),
    codeRecall: share(scores, 'code', 'matched'),
    codeLanguageRecall: share(scores, 'code', 'matchedWithLanguage'),
    linkRecall: share(scores, 'links', 'matched'),
  }
}
