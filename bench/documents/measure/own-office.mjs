import { makeOfficeDocument, OFFICE_PLANS } from '../office/corpus.mjs'
import { equationCounts } from '../office/equations.mjs'
import { scoreDocument, summarised } from '../scores/document-score.mjs'
import { figure, memoryFigure, timeFigures } from './figures.mjs'

const LIMIT_MS = 15_000

/** Figures of one kind of documents against the bars; what it does not hold has none. */
function kindFigures(kind, documents) {
  const scores = documents.map(({ score }) => score)
  const all = summarised(scores)
  const equations = (name) => scores.reduce((sum, score) => sum + score.equations[name], 0)
  const figures = [
    figure(`${kind}: text and order`, all.similarity, { least: 0.97 }),
    figure(`${kind}: heading F1 with levels`, all.headingLevelF1, { least: 0.95 }),
    figure(`${kind}: list item recall with depth`, all.itemDepthRecall, { least: 0.95 }),
    figure(`${kind}: TEDS of tables`, all.ruledTables, { least: 0.95 }),
    figure(`${kind}: programs read to the character`, all.codeRecall, { least: 0.95 }),
    figure(`${kind}: links`, all.linkRecall, { least: 0.95 }),
    figure(`${kind}: equations`, equations('matched') / equations('truth'), { least: 0.95 }),
  ]
  return figures.filter(({ value }) => !Number.isNaN(value))
}

export const officeFigures = (documents) =>
  [...new Set(documents.map(({ kind }) => kind))].flatMap((kind) =>
    kindFigures(
      kind,
      documents.filter((one) => one.kind === kind),
    ),
  )

/** Scores of a document of the corpus that was read as this Markdown. */
export const scoreOffice = (truth, markdown) => ({
  ...scoreDocument(truth, markdown),
  equations: equationCounts(truth.source, markdown),
})

/** Reads the office documents of our own making: {title, isOwn, figures, documents}. */
export async function measureOwnOffice(reader) {
  const documents = []
  for (const plan of [...OFFICE_PLANS.filter(({ name }) => name.endsWith('-1')), ...OFFICE_PLANS]) {
    const truth = makeOfficeDocument(plan)
    const input = { bytes: truth.bytes, contentType: '', name: truth.name, baseUrl: '' }
    const { output, ms, cpuMs, ...failure } = await reader.read(input, LIMIT_MS)
    documents.push({
      name: truth.name,
      kind: truth.kind,
      ms,
      cpuMs,
      score: scoreOffice(truth, output?.markdown ?? ''),
      failure: output ? undefined : JSON.stringify(failure),
    })
  }
  // Those of the warm-up come first.
  const measured = documents.slice(-OFFICE_PLANS.length)
  const figures = [...officeFigures(measured), ...timeFigures(measured), memoryFigure(reader)]
  return { title: `Office documents of our own making: ${measured.length}`, isOwn: true, figures, documents: measured }
}
