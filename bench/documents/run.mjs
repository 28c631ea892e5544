/**
 * `node bench/documents/run.mjs [--only html|pdf|producers|office|robustness] [--step <n>] [--json <file>] [--engine <file>]`: see
 * README.md beside this file. Exit code 1 when a bar of our own corpora is missed or the run is broken.
 */
import { existsSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { measureOwnHtml } from './measure/own-html.mjs'
import { measureOwnOffice } from './measure/own-office.mjs'
import { measureOwnPdf } from './measure/own-pdf.mjs'
import { measureProducers } from './measure/producers.mjs'
import { measurePublicHtml } from './measure/public-html.mjs'
import { measureRobustness } from './measure/robustness.mjs'
import { DocumentReader } from './reading/document-reader.mjs'
import { corpusReport, missedOwnBars } from './report.mjs'

const BUILT_ENGINE = fileURLToPath(new URL('../../packages/document-engine/dist/engine.js', import.meta.url))
/** Without DOCUMENT_CORPORA every public corpus is reported as absent. */
const NOWHERE = '/nonexistent'

const { values: options } = parseArgs({
  options: {
    only: { type: 'string' },
    step: { type: 'string', default: '1' },
    json: { type: 'string' },
    engine: { type: 'string', default: BUILT_ENGINE },
  },
})
const enginePath = resolve(options.engine)
const corpora = process.env.DOCUMENT_CORPORA ?? NOWHERE
const step = Number(options.step)

const PARTS = {
  html: [measureOwnHtml, (reader) => measurePublicHtml(reader, corpora, step)],
  pdf: [measureOwnPdf],
  office: [measureOwnOffice],
  producers: [measureProducers],
  robustness: [(reader) => measureRobustness(reader, corpora, step)],
}

/** Every corpus gets a process of its own, so that its peak of memory is its own as well. */
async function measured(part) {
  const results = []
  for (const measure of PARTS[part]) {
    const reader = new DocumentReader(enginePath)
    try {
      results.push([await measure(reader)].flat())
    } finally {
      await reader.stop()
    }
    for (const result of results.at(-1)) console.log(corpusReport(result))
  }
  return results.flat()
}

function summary(results, missed) {
  if (!results.some(({ isOwn }) => isOwn)) return '\nNo corpus of our own was read.'
  return missed.length === 0 ? '\nEvery bar of our own corpora is met.' : `\nMISSED\n  ${missed.join('\n  ')}`
}

async function main() {
  const parts = options.only ? [options.only] : Object.keys(PARTS)
  if (parts.some((part) => !PARTS[part])) throw new Error(`--only takes one of ${Object.keys(PARTS).join(', ')}`)
  if (!(step >= 1)) throw new Error('--step takes a number from 1')
  if (!existsSync(enginePath)) throw new Error(`${enginePath} is missing: run \`npm run build\` first`)
  console.log(`${cpus()[0]?.model ?? 'unknown'} x ${cpus().length}, Node ${process.version}`)
  const results = []
  for (const part of parts) results.push(...(await measured(part)))
  if (options.json)
    writeFileSync(options.json, `${JSON.stringify({ date: new Date().toISOString(), results }, null, 2)}\n`)
  const missed = missedOwnBars(results)
  console.log(summary(results, missed))
  return missed.length === 0 ? 0 : 1
}

try {
  process.exitCode = await main()
} catch (error) {
  console.error(`BROKEN: ${error.message}`)
  process.exitCode = 1
}
