/**
 * PDFs of programs that people use, from documents of known text: Chromium, LibreOffice (from HTML by way of ODT and DOCX), WeasyPrint
 * and pdflatex, each where it is installed.
 */
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { toLinks, toScoredBlocks } from '../text/blocks.mjs'
import { makeDocument } from '../text/document-maker.mjs'
import { htmlSource } from './html-source.mjs'
import { latexSource } from './latex-source.mjs'

const run = promisify(execFile)
const LIMIT = { timeout: 120_000 }

const chromium = (tagged) => async (plan, blocks, folder) => {
  const source = join(folder, 'source.html')
  writeFileSync(source, htmlSource(blocks, plan))
  const options = [
    '--headless',
    '--no-sandbox',
    '--disable-gpu',
    '--no-pdf-header-footer',
    `--user-data-dir=${join(folder, 'profile')}`,
  ]
  if (!tagged) options.push('--disable-pdf-tagging')
  await run('chromium', [...options, `--print-to-pdf=${join(folder, 'made.pdf')}`, pathToFileURL(source).href], LIMIT)
}

const weasyprint = async (plan, blocks, folder) => {
  writeFileSync(join(folder, 'source.html'), htmlSource(blocks, plan))
  await run('weasyprint', [join(folder, 'source.html'), join(folder, 'made.pdf')], LIMIT)
}

const libreOffice = (format, tagged) => async (plan, blocks, folder) => {
  writeFileSync(join(folder, 'source.html'), htmlSource(blocks, plan))
  const office = (target, file) =>
    run(
      'soffice',
      [
        `-env:UserInstallation=${pathToFileURL(join(folder, 'profile')).href}`,
        '--headless',
        '--convert-to',
        target,
        '--outdir',
        folder,
        join(folder, file),
      ],
      LIMIT,
    )
  await office(format === 'odt' ? 'odt:writer8' : 'docx:MS Word 2007 XML', 'source.html')
  const choice = JSON.stringify({ UseTaggedPDF: { type: 'boolean', value: String(tagged) } })
  await office(`pdf:writer_pdf_Export:${choice}`, `source.${format}`)
  writeFileSync(join(folder, 'made.pdf'), readFileSync(join(folder, 'source.pdf')))
}

const pdflatex = (isT1) => async (plan, blocks, folder) => {
  writeFileSync(join(folder, 'made.tex'), latexSource(blocks, { ...plan, isT1 }))
  await run('pdflatex', ['-interaction=batchmode', '-halt-on-error', 'made.tex'], { ...LIMIT, cwd: folder })
}

/** Each with the command that must be installed. LibreOffice ends the columns of HTML, so that it gets one. */
export const PRODUCERS = [
  { name: 'Chromium, tagged', command: 'chromium', columns: [1, 2], make: chromium(true) },
  { name: 'Chromium, untagged', command: 'chromium', columns: [1, 2], make: chromium(false) },
  { name: 'LibreOffice from ODT, tagged', command: 'soffice', columns: [1], make: libreOffice('odt', true) },
  { name: 'LibreOffice from DOCX, untagged', command: 'soffice', columns: [1], make: libreOffice('docx', false) },
  { name: 'WeasyPrint', command: 'weasyprint', columns: [1, 2], make: weasyprint },
  { name: 'pdflatex', command: 'pdflatex', columns: [1, 2], make: pdflatex(false) },
  { name: 'pdflatex, bitmap fonts', command: 'pdflatex', columns: [1, 2], make: pdflatex(true) },
]

const DOCUMENTS = [
  { seed: 901, topic: 0, sections: 5, tables: ['grid', 'none', 'booktabs'] },
  { seed: 902, topic: 2, sections: 6, tables: ['booktabs', 'grid', 'none'] },
  { seed: 903, topic: 4, sections: 5, tables: ['none', 'booktabs', 'grid'] },
]

/** The documents of one producer: plans of `makeDocument`. */
export const plansOf = ({ columns }) =>
  columns.flatMap((count) =>
    DOCUMENTS.map((plan) => ({
      ...plan,
      name: `${plan.seed}-${count}`,
      columns: count,
      extras: ['list', 'table', 'code', 'list', 'table', 'figure'],
      links: true,
    })),
  )

export async function isInstalled(command) {
  return run('sh', ['-c', `command -v ${command}`]).then(
    () => true,
    () => false,
  )
}

/** A document of a producer with its truth: {name, columns, bytes, blocks, links}. */
export async function makeWith(producer, plan) {
  const folder = mkdtempSync(join(tmpdir(), 'producer-'))
  try {
    const blocks = makeDocument(plan)
    await producer.make(plan, blocks, folder)
    const bytes = readFileSync(join(folder, 'made.pdf'))
    return { name: plan.name, columns: plan.columns, bytes, blocks: toScoredBlocks(blocks), links: toLinks(blocks) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
