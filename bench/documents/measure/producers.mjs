import { isInstalled, makeWith, plansOf, PRODUCERS } from '../producers/corpus.mjs'
import { orderOf } from '../scores/block-order.mjs'
import { scoreDocument, summarised } from '../scores/document-score.mjs'
import { readMarkdown } from '../scores/read-markdown.mjs'
import { textOfBlocks } from '../scores/structure.mjs'
import { mean } from '../scores/words.mjs'
import { figure, memoryFigure, timeFigures } from './figures.mjs'

const LIMIT_MS = 60_000

async function documentOf(reader, producer, plan) {
  const truth = await makeWith(producer, plan)
  const input = { bytes: truth.bytes, contentType: 'application/pdf', name: `${truth.name}.pdf`, baseUrl: '' }
  const { output, ms, cpuMs, ...failure } = await reader.read(input, LIMIT_MS)
  const markdown = output?.markdown ?? ''
  return {
    name: truth.name,
    columns: truth.columns,
    pages: output?.pages ?? 1,
    ms,
    cpuMs,
    score: scoreDocument(truth, markdown),
    order: orderOf(truth.blocks, textOfBlocks(readMarkdown(markdown).blocks)),
    failure: output ? undefined : JSON.stringify(failure),
  }
}

function figuresOf(documents, reader) {
  const all = summarised(documents.map(({ score }) => score))
  const tables = documents.flatMap(({ score }) => score.tables.map(({ similarity }) => similarity))
  return [
    figure('text similarity', all.similarity),
    figure('order of paragraphs and headings', mean(documents.map(({ order }) => order)), { least: 0.95 }),
    figure('heading F1', all.headingF1),
    figure('heading F1 with levels', all.headingLevelF1),
    figure('list item recall', all.itemRecall, { least: 0.9 }),
    figure('list item recall with depth', all.itemDepthRecall),
    figure('TEDS, all tables', mean(tables), { least: 0.8 }),
    figure('tables that are none', all.spuriousTables),
    figure('programs read to the character', all.codeRecall),
    figure('links', all.linkRecall),
    ...timeFigures(documents),
    memoryFigure(reader),
  ]
}

/** Reads the PDFs of programs that are installed: one result for each program and number of columns. */
export async function measureProducers(reader) {
  const results = []
  for (const producer of PRODUCERS) {
    const isThere = await isInstalled(producer.command)
    for (const columns of producer.columns) {
      const title = `PDFs of ${producer.name}, ${columns === 1 ? 'one column' : `${columns} columns`}`
      if (!isThere) {
        results.push({ title: `${title}: NOT RUN, ${producer.command}`, isAbsent: true })
        continue
      }
      const documents = []
      for (const plan of plansOf(producer).filter((one) => one.columns === columns)) {
        documents.push(await documentOf(reader, producer, plan))
      }
      results.push({ title, isOwn: false, figures: figuresOf(documents, reader), documents })
    }
  }
  return results
}
