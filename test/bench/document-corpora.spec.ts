import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from '@jest/globals'
import { readDocument } from '@multi-model-gateway/document-engine/engine.js'
import {
  DocumentReader,
  type Figure,
  htmlFigures,
  makePage,
  makePdf,
  PAGES,
  pdfFigures,
  type Plan,
  PLANS,
  readMarkdown,
  scoreDocument,
  scorePage,
} from '../support/bench-scripts.js'

const LIMITS = { pages: 500, decodedBytes: 25_000_000 }
const SHORT_PDFS = [
  'oneColumn-1',
  'oneColumn-4',
  'twoColumns-1',
  'twoColumns-4',
  'officeTimes-3',
  'tex-1',
  'texColumns-1',
  'chinese',
]
const named = (plans: Plan[], names: string[]): Plan[] => plans.filter(({ name }) => names.includes(name))
const missed = (figures: Figure[]): Figure[] => figures.filter(({ met }) => met === false)

describe('the corpus of PDFs', () => {
  it('is the same each time it is made', async () => {
    const [plan] = named(PLANS, ['texColumns-1'])
    const [one, other] = await Promise.all([makePdf(plan as Plan), makePdf(plan as Plan)])
    expect(one.bytes.equals(other.bytes)).toBe(true)
    expect(one.markdown).toBe(other.markdown)
  })

  it('has a truth in Markdown that says what its blocks say', async () => {
    for (const plan of named(PLANS, SHORT_PDFS)) {
      const { blocks, markdown, links } = await makePdf(plan)
      const read = readMarkdown(markdown)
      const withoutRules = blocks.map((block) => (block.type === 'table' ? { type: 'table', rows: block.rows } : block))
      expect(read.blocks).toEqual(withoutRules)
      expect(read.links).toEqual(links)
    }
  })

  it('is read by the engine within every bar', async () => {
    const documents = []
    for (const plan of named(PLANS, SHORT_PDFS)) {
      const truth = await makePdf(plan)
      const input = {
        bytes: new Uint8Array(truth.bytes),
        contentType: 'application/pdf',
        name: truth.name,
        baseUrl: '',
      }
      const { markdown } = await readDocument(input, LIMITS)
      documents.push({ columns: truth.columns, score: scoreDocument(truth, markdown) })
    }
    expect(documents).toHaveLength(SHORT_PDFS.length)
    expect(missed(pdfFigures(documents))).toEqual([])
  })

  it('misses its bars when nothing is read', async () => {
    const truth = await makePdf(PLANS[0] as Plan)
    const figures = pdfFigures([{ columns: truth.columns, score: scoreDocument(truth, '') }])
    expect(missed(figures).map(({ name }) => name)).toContain('text similarity, one column')
  })
})

describe('the corpus of pages', () => {
  it('is the same each time it is made', () => {
    expect(PAGES.map((page) => makePage(page).bytes.toString())).toEqual(
      PAGES.map((page) => makePage(page).bytes.toString()),
    )
  })

  it('is read by the engine within every bar', async () => {
    const pages = []
    for (const plan of PAGES.filter((_, index) => index % 3 === 0)) {
      const page = makePage(plan)
      const input = {
        bytes: new Uint8Array(page.bytes),
        contentType: 'text/html',
        name: '',
        baseUrl: page.url,
      }
      pages.push({ score: scorePage(page, await readDocument(input, LIMITS)) })
    }
    expect(pages).toHaveLength(12)
    expect(missed(htmlFigures(pages))).toEqual([])
  })

  it('misses its bars when the whole page is taken for its content', () => {
    const pages = PAGES.slice(0, 6).map((plan) => {
      const page = makePage(plan)
      return { score: scorePage(page, { html: page.bytes.toString(), markdown: page.markdown }) }
    })
    expect(missed(htmlFigures(pages)).map(({ name }) => name)).toContain('shingle F1 of the main content')
  })
})

describe('reading in a process of its own', () => {
  const directory = mkdtempSync(join(tmpdir(), 'document-reader-'))
  const engine = join(directory, 'engine.mjs')
  writeFileSync(
    engine,
    `export async function readDocument({ name, bytes }) {
      if (name === 'ends') process.exit(3)
      if (name === 'hangs') for (;;);
      if (name === 'refused') throw Object.assign(new Error('no'), { name: 'EngineFault', fault: 'encrypted' })
      if (name === 'throws') throw new TypeError('a fault of ours')
      return { markdown: String(bytes.length) }
    }`,
  )
  const reader = new DocumentReader(engine)
  const read = (name: string, limitMs = 20_000) =>
    reader.read({ bytes: new Uint8Array(7), contentType: '', name, baseUrl: '' }, limitMs)

  afterEach(async () => {
    await reader.stop()
    rmSync(directory, { recursive: true, force: true })
  })

  it('tells documents that were read, refused, failed, cost the process or took too long, and goes on after each', async () => {
    expect(await read('any')).toMatchObject({ output: { markdown: '7' } })
    expect(await read('refused')).toMatchObject({ fault: 'encrypted' })
    expect((await read('throws')).error).toMatch(/TypeError: a fault of ours/)
    expect(await read('ends')).toEqual({ crashed: true })
    expect(await read('hangs', 300)).toEqual({ late: true })
    expect(await read('any')).toMatchObject({ output: { markdown: '7' } })
    expect(reader.peakBytes).toBeGreaterThan(10_000_000)
  })
})
