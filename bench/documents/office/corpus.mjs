import { heading, paragraph, table, toLinks, toScoredBlocks } from '../text/blocks.mjs'
import { makeDocument } from '../text/document-maker.mjs'
import { Prose } from '../text/prose.mjs'
import { Random } from '../text/random.mjs'
import { TOPICS } from '../text/vocabulary.mjs'
import { equationParagraph } from './equations.mjs'
import { writeDocx } from './write-docx.mjs'
import { MAIL_AUTHOR, writeEml, writeEpub, writeOdt, writeRtf } from './write-others.mjs'
import { writePptx } from './write-pptx.mjs'
import { formattedColumn, writeXlsx } from './write-xlsx.mjs'

const PER_KIND = 6
const FLOWING = { docx: writeDocx, odt: writeOdt, rtf: writeRtf, epub: writeEpub, eml: writeEml }

/** Every document of the corpus: {name, kind, seed, topic, …}. */
export const OFFICE_PLANS = [...Object.keys(FLOWING), 'pptx', 'xlsx'].flatMap((kind, series) =>
  Array.from({ length: PER_KIND }, (_, index) => ({
    name: `${kind}-${index + 1}`,
    kind,
    seed: 10_000 * (series + 1) + index,
    topic: index % TOPICS.length,
    sections: 3 + (index % 3),
    listsByStyle: index % 2 === 1,
    codeByFont: index % 3 === 2,
  })),
)

const truthOf = (blocks) => ({ source: blocks, blocks: toScoredBlocks(blocks), links: toLinks(blocks) })

function flowing(plan, random, prose) {
  const document = makeDocument({
    ...plan,
    columns: 1,
    links: true,
    extras: ['list', 'table', 'code', 'figure'],
    tables: ['grid'],
  })
  const blocks =
    plan.kind === 'docx'
      ? document.flatMap((block, index) =>
          block.type === 'paragraph' && index % 3 === 0
            ? [block, equationParagraph(random, prose, index % 2 === 0)]
            : [block],
        )
      : document
  const shown = plan.kind === 'eml' ? [paragraph(`From: ${MAIL_AUTHOR}`), ...blocks] : blocks
  return { ...truthOf(shown), bytes: FLOWING[plan.kind](blocks, plan) }
}

const box = (x, y, width, height) => ({ x, y, width, height })

/** Blocks of a slide at their places, in order of reading: a column over both, two columns, or rows of cards. */
function slide(random, prose) {
  const words = () => paragraph(prose.item())
  const title = { block: heading(2, prose.heading()), box: box(0.05, 0.05, 0.9, 0.1) }
  const items = {
    type: 'list',
    ordered: false,
    items: Array.from({ length: 3 }, () => ({ content: [{ text: prose.item() }] })),
  }
  const numbers = table(
    'grid',
    ['Item', 'Count'],
    Array.from({ length: 3 }, () => [prose.label(), String(random.integer(1, 999))]),
  )
  const layouts = [
    () => [
      { block: words(), box: box(0.05, 0.2, 0.9, 0.1) },
      { block: items, box: box(0.05, 0.35, 0.9, 0.3) },
      { block: words(), box: box(0.05, 0.8, 0.9, 0.1) },
    ],
    () => [
      { block: items, box: box(0.05, 0.2, 0.42, 0.5) },
      { block: words(), box: box(0.05, 0.72, 0.42, 0.2) },
      { block: numbers, box: box(0.52, 0.22, 0.42, 0.6) },
      { block: words(), box: box(0.52, 0.84, 0.42, 0.1) },
    ],
    () => [0.2, 0.55].flatMap((y) => [0.05, 0.37, 0.69].map((x) => ({ block: words(), box: box(x, y, 0.28, 0.3) }))),
  ]
  return [title, ...random.pick(layouts)()]
}

function presentation({ sections }, random, prose) {
  const slides = Array.from({ length: sections + 3 }, () => slide(random, prose))
  const blocks = slides.flatMap((placed) => placed.map(({ block }) => block))
  return { ...truthOf(blocks), bytes: writePptx(slides, random) }
}

function workbook({ sections }, random, prose) {
  const sheets = Array.from({ length: sections }, (_, index) => {
    const labels = Array.from({ length: random.integer(4, 20) }, () => prose.label())
    const columns = Array.from({ length: random.integer(2, 6) }, () => formattedColumn(random, labels.length))
    return {
      name: `Sheet ${index + 1}`,
      header: ['Item', ...columns.map((_, at) => `Column ${at + 1}`)],
      labels,
      columns,
    }
  })
  const blocks = sheets.flatMap(({ name, header, labels, columns }) => [
    heading(2, name),
    table(
      'grid',
      header,
      labels.map((label, row) => [label, ...columns.map(({ cells }) => cells[row].text)]),
    ),
  ])
  return { ...truthOf(blocks), bytes: writeXlsx(sheets) }
}

/** A document of the corpus: {name, kind, bytes, source, blocks, links}. The same plan gives the same bytes. */
export function makeOfficeDocument(plan) {
  const random = new Random(plan.seed)
  const prose = new Prose(random, TOPICS[plan.topic])
  const make = plan.kind === 'pptx' ? presentation : plan.kind === 'xlsx' ? workbook : flowing
  return { name: plan.name, kind: plan.kind, ...make(plan, random, prose) }
}
