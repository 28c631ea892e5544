/**
 * `node bench/documents/peers.mjs`: what others make of the corpora of our own, scored as the benchmark scores the engine. Pandoc and
 * pdftotext are run where they are installed, the packages of Python in an environment of their own where it can be made.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { withPython } from '../../scripts/python-environment.mjs'
import { makePage, PAGES } from './html/corpus.mjs'
import { makePdf, PLANS } from './pdf/corpus.mjs'
import { scoreDocument, summarised } from './scores/document-score.mjs'

const MOST_OUTPUT_BYTES = 256 * 1024 * 1024

/** Prints the Markdown of each file, as JSON; what fails is empty. */
const python = (imports, expression) => `
import json, sys
${imports}
def read(path):
    try:
        return ${expression} or ""
    except Exception as error:
        print(path, error, file=sys.stderr)
        return ""
json.dump([read(path) for path in sys.argv[1:]], sys.stdout)
`

/** `program` reads one file, `script` all of them; `kinds`: what it can read. */
const PEERS = {
  pandoc: { kinds: ['html'], program: 'pandoc', parameters: ['-f', 'html', '-t', 'gfm', '--wrap=none'] },
  pdftotext: { kinds: ['pdf'], program: 'pdftotext', parameters: ['-enc', 'UTF-8'], output: ['-'] },
  markitdown: {
    kinds: ['html', 'pdf'],
    requirements: ['markitdown[pdf,docx,pptx,xlsx]==0.1.9'],
    script: python('from markitdown import MarkItDown\nreader = MarkItDown()', 'reader.convert(path).text_content'),
  },
  trafilatura: {
    kinds: ['html'],
    requirements: ['trafilatura==2.3.1', 'lxml_html_clean==0.4.6'],
    script: python(
      'import trafilatura',
      'trafilatura.extract(open(path, "rb").read(), output_format="markdown", include_links=True, include_tables=True)',
    ),
  },
  pymupdf4llm: {
    kinds: ['pdf'],
    requirements: ['pymupdf4llm==0.3.4'],
    script: python('import pymupdf4llm', 'pymupdf4llm.to_markdown(path, show_progress=False)'),
  },
}

async function corpora(directory) {
  const pdfs = []
  for (const plan of PLANS) pdfs.push(await makePdf(plan))
  const made = { html: PAGES.map(makePage), pdf: pdfs }
  return Object.entries(made).map(([kind, documents]) => ({
    kind,
    documents: documents.map((document) => {
      const path = join(directory, `${document.name}.${kind}`)
      writeFileSync(path, document.bytes)
      return { path, truth: document }
    }),
  }))
}

/** Throws when the program is not there, or fails: a peer that does not run has no figures. */
function run(program, parameters) {
  const { status, stdout, stderr, error } = spawnSync(program, parameters, {
    encoding: 'utf8',
    maxBuffer: MOST_OUTPUT_BYTES,
  })
  if (status !== 0) throw error ?? new Error(stderr.trim().split('\n').at(-1))
  return stdout
}

/** The Markdown of each document by one peer. */
function readBy({ program, parameters, output = [], script }, paths, programOf) {
  if (program !== undefined) return paths.map((path) => run(program, [...parameters, path, ...output]))
  // Libraries print advertisements and progress; the last line is the answer.
  return JSON.parse(
    run(programOf('python'), ['-c', script, ...paths])
      .trim()
      .split('\n')
      .at(-1) || '[]',
  )
}

const COLUMNS = {
  text: 'similarity',
  headings: 'headingF1',
  items: 'itemRecall',
  'ruled tables': 'ruledTables',
  'bare tables': 'bareTables',
  programs: 'codeRecall',
  links: 'linkRecall',
}

function report(name, kind, documents, texts) {
  const scores = documents.map(({ truth }, index) => scoreDocument(truth, texts[index] ?? ''))
  const figures = summarised(scores)
  const shown = Object.entries(COLUMNS).map(([column, figure]) => {
    return `${column} ${Number.isNaN(figures[figure]) ? '–' : figures[figure].toFixed(3)}`
  })
  console.log(`${kind.padEnd(5)} ${name.padEnd(12)} ${shown.join('  ')}`)
}

function measure(made, peers, programOf) {
  for (const { kind, documents } of made) {
    const paths = documents.map(({ path }) => path)
    for (const [name, peer] of peers.filter(([, { kinds }]) => kinds.includes(kind))) {
      try {
        report(name, kind, documents, readBy(peer, paths, programOf))
      } catch (error) {
        console.log(`NOT RUN: ${name}: ${error.message}`)
      }
    }
  }
}

const directory = mkdtempSync(join(tmpdir(), 'gateway-peers-'))
try {
  const made = await corpora(directory)
  const peers = Object.entries(PEERS)
  const isPython = ([, { requirements }]) => requirements !== undefined
  measure(
    made,
    peers.filter((peer) => !isPython(peer)),
  )
  const requirements = peers.flatMap(([, peer]) => peer.requirements ?? [])
  await withPython(requirements, (programOf) => measure(made, peers.filter(isPython), programOf))
} finally {
  rmSync(directory, { recursive: true, force: true })
}
