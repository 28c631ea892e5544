import { afterAll, describe, expect, it } from '@jest/globals'
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const SCRIPT = fileURLToPath(new URL('../../bench/documents/run.mjs', import.meta.url))
const CORPUS = new URL('../../bench/documents/html/corpus.mjs', import.meta.url).href
const directory = mkdtempSync(join(tmpdir(), 'document-run-'))

/** Knows the right answer of every page. */
const KNOWING = `
  import { makePage, PAGES } from '${CORPUS}'
  const pages = new Map(PAGES.map((plan) => [plan.name, makePage(plan)]))
  const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
  const textOf = ({ text, rows }) => text ?? rows.map((cells) => cells.join(' ')).join(' ')
  export const readDocument = ({ name }) => {
    const { blocks, markdown } = pages.get(name)
    return { markdown, html: blocks.map((block) => '<p>' + escaped(textOf(block)) + '</p>').join('') }
  }`
const SILENT = `export const readDocument = () => ({ markdown: '', html: '' })`

function run(engine: string, ...parameters: string[]): Promise<{ code: number; text: string }> {
  const path = join(directory, 'engine.mjs')
  writeFileSync(path, engine)
  const command = [SCRIPT, '--engine', path, ...parameters]
  const env = { PATH: process.env['PATH'], DOCUMENT_CORPORA: directory }
  return new Promise((resolve) => {
    execFile(process.execPath, command, { env }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), text: stdout + stderr })
    })
  })
}

afterAll(() => {
  rmSync(directory, { recursive: true, force: true })
})

describe('npm run bench:documents', () => {
  it('ends well, with its figures in a file, when every bar of our own corpora is met', async () => {
    const json = join(directory, 'results.json')
    const { code, text } = await run(KNOWING, '--only', 'html', '--json', json)
    expect(text).toContain('Every bar of our own corpora is met.')
    expect(code).toBe(0)
    const { results } = JSON.parse(readFileSync(json, 'utf8')) as { results: { isAbsent?: boolean }[] }
    expect(results.map(({ isAbsent }) => isAbsent === true)).toEqual([false, true, true, true])
  })

  it('fails when a bar is missed', async () => {
    const { code, text } = await run(SILENT, '--only', 'html')
    expect(text).toMatch(/shingle F1 of the main content .* NOT MET/)
    expect(code).toBe(1)
  })

  it('fails when a document is not read, whatever the figures are', async () => {
    const { code, text } = await run(
      KNOWING.replace('{ name }) => {', "{ name }) => { if (name === 'forum-1') throw new Error('no')"),
      '--only',
      'html',
    )
    expect(text).toMatch(/FAILED forum-1: .*Error: no/)
    expect(text).toContain('forum-1 was not read')
    expect(code).toBe(1)
  })

  it('calls corpora absent that are not there', async () => {
    const { code, text } = await run(SILENT, '--only', 'robustness')
    expect(text).toContain('Test files of pdf.js: absent, nothing measured')
    expect(text).toContain('No corpus of our own was read.')
    expect(code).toBe(0)
  })

  it('fails with words when it cannot run', async () => {
    expect(await run(SILENT, '--only', 'everything')).toMatchObject({
      code: 1,
      text: expect.stringContaining('--only'),
    })
    expect(await run('throw new Error("no engine")', '--only', 'html')).toMatchObject({
      code: 1,
      text: expect.stringContaining('the engine does not start'),
    })
  })
})
