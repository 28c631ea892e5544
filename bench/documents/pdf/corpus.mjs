import { toLinks, toMarkdown, toScoredBlocks } from '../text/blocks.mjs'
import { makeDocument } from '../text/document-maker.mjs'
import { STYLES } from './styles.mjs'
import { writePdf } from './write-pdf.mjs'

const EXTRAS = ['list', 'table', 'code', 'figure']
const series = (style, count, plan) =>
  Array.from({ length: count }, (_, index) => ({
    name: `${style}-${index + 1}`,
    style,
    columns: STYLES[style].columns,
    topic: index % 6,
    extras: EXTRAS,
    ...plan(index),
  }))

/** Sections of the documents of a series: from one page to about twelve. */
const SECTIONS = [2, 4, 7, 3, 12, 5]

/** Every document of the corpus; plans of makeDocument with the name of a style. */
export const PLANS = [
  ...series('oneColumn', 6, (index) => ({
    seed: 100 + index,
    sections: SECTIONS[index],
    tables: ['grid', 'none'],
    links: index % 2 === 0,
    numbered: index % 3 === 1 ? 'dot' : undefined,
  })),
  ...series('twoColumns', 6, (index) => ({
    seed: 200 + index,
    sections: SECTIONS[index] + 3,
    tables: ['none', 'grid', 'booktabs'],
    abstract: true,
    numbered: index % 2 === 0 ? 'plain' : undefined,
  })),
  ...series('wordProcessor', 4, (index) => ({
    seed: 300 + index,
    sections: SECTIONS[index] + 2,
    tables: ['grid'],
    links: true,
  })),
  ...series('officeTimes', 3, (index) => ({
    seed: 400 + index,
    sections: SECTIONS[index + 1],
    tables: ['grid', 'none'],
    numbered: 'dot',
    links: true,
  })),
  ...series('tex', 5, (index) => ({
    seed: 500 + index,
    sections: SECTIONS[index] + 1,
    tables: ['booktabs', 'booktabs', 'none', 'grid'],
    abstract: index % 2 === 0,
    numbered: 'plain',
  })),
  ...series('texColumns', 4, (index) => ({
    seed: 600 + index,
    sections: SECTIONS[index] + 5,
    tables: ['booktabs', 'none'],
    abstract: true,
    numbered: 'plain',
  })),
  ...['chinese', 'japanese'].map((language, index) => ({
    name: language,
    style: 'farEast',
    language,
    columns: 1,
    seed: 700 + index,
    sections: 5,
    extras: ['list'],
    tables: [],
  })),
]

/** A document of the corpus: {name, style, columns, bytes, markdown, blocks, links}, blocks as scores compare them. */
export async function makePdf({ style, ...plan }) {
  const blocks = makeDocument(plan)
  const language = plan.language && (await import('./fonts.mjs')).TYPEFACES[plan.language]
  const chosen = language ? { ...STYLES[style], faces: language, headingFaces: language } : STYLES[style]
  return {
    name: plan.name,
    style,
    columns: plan.columns,
    bytes: await writePdf(blocks, chosen),
    markdown: toMarkdown(blocks),
    blocks: toScoredBlocks(blocks),
    links: toLinks(blocks),
  }
}
