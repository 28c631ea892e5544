import { makePdf, PLANS } from '../pdf/corpus.mjs'
import { scoreDocument, summarised } from '../scores/document-score.mjs'
import { mean } from '../scores/words.mjs'
import { figure, memoryFigure, timeFigures } from './figures.mjs'

const LIMIT_MS = 60_000

/** Figures of documents {columns, score} against the bars; exported for the suite, which reads a part of the corpus. */
export function pdfFigures(documents) {
  const scores = documents.map(({ score }) => score)
  const all = summarised(scores)
  const similarity = (columns) =>
    mean(documents.filter((one) => one.columns === columns).map(({ score }) => score.similarity))
  return [
    figure('text similarity, one column', similarity(1), { least: 0.97 }),
    figure('text similarity, two columns', similarity(2), { least: 0.94 }),
    figure('heading F1', all.headingF1, { least: 0.95 }),
    figure('heading F1 with levels', all.headingLevelF1),
    figure('list item recall', all.itemRecall, { least: 0.95 }),
    figure('list item recall with depth', all.itemDepthRecall),
    figure('TEDS, tables with rules', all.ruledTables, { least: 0.85 }),
    figure('TEDS, tables without rules', all.bareTables, { least: 0.7 }),
    figure('tables that are none', all.spuriousTables),
    figure('programs read to the character', all.codeRecall),
    figure('links', all.linkRecall),
  ]
}

const inputOf = ({ name, bytes }) => ({ bytes, contentType: 'application/pdf', name: `${name}.pdf`, baseUrl: '' })

/** Loads the reader of PDFs and lets the compiler see every style once: a child of the pool reads more than one document. */
async function warmUp(reader) {
  for (const plan of PLANS.filter(({ name }) => name.endsWith('-1'))) {
    await reader.read(inputOf(await makePdf(plan)), LIMIT_MS)
  }
}

/** Reads the PDFs of our own making: {title, isOwn, figures, documents}. */
export async function measureOwnPdf(reader) {
  await warmUp(reader)
  const documents = []
  for (const plan of PLANS) {
    const truth = await makePdf(plan)
    const { output, ms, cpuMs, ...failure } = await reader.read(inputOf(truth), LIMIT_MS)
    documents.push({
      name: truth.name,
      columns: truth.columns,
      pages: output?.pages ?? 1,
      ms,
      cpuMs,
      score: scoreDocument(truth, output?.markdown ?? ''),
      failure: output ? undefined : JSON.stringify(failure),
    })
  }
  const pages = documents.reduce((sum, one) => sum + one.pages, 0)
  const perSecond = (name) => pages / (documents.reduce((sum, one) => sum + (one[name] ?? NaN), 0) / 1000)
  const figures = [
    ...pdfFigures(documents),
    figure('pages a second of one core', perSecond('cpuMs'), { least: 30 }),
    figure('pages a second by the clock', perSecond('ms')),
    ...timeFigures(documents),
    memoryFigure(reader),
  ]
  return {
    title: `PDFs of our own making: ${documents.length} documents, ${pages} pages`,
    isOwn: true,
    figures,
    documents,
  }
}
