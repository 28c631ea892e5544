import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, describe, expect, it } from '@jest/globals'
import { readDocument } from '@multi-model-gateway/document-engine/engine.js'
import fc from 'fast-check'
import {
  DocumentReader,
  type Figure,
  headingCounts,
  headingF1,
  htmlFigures,
  htmlText,
  itemCounts,
  makePage,
  makePdf,
  makeOfficeDocument,
  OFFICE_PLANS,
  officeFigures,
  openLoads,
  outcomeOf,
  overloadReport,
  PAGES,
  pairedTables,
  pdfFigures,
  type Plan,
  PLANS,
  readMarkdown,
  type ScoredBlock,
  scoreDocument,
  scoreOffice,
  scorePage,
  shingleScore,
  shingleShares,
  tableSimilarity,
  Tally,
  textSimilarity,
  type Tree,
  treeDistance,
  type ReportResult,
  wordF1,
} from '../support/bench-scripts.js'

describe('bench', () => {
  const heading = (text: string, level = 2): ScoredBlock => ({ type: 'heading', level, text })
  const item = (text: string, depth = 1): ScoredBlock => ({ type: 'item', depth, ordered: false, text })
  const leaf = (label: string, ...children: Tree[]): Tree => ({ label, children })
  const unlike = (one: Tree, other: Tree): number => (one.label === other.label ? 0 : 1)

  describe('F1 over shingles of four words', () => {
    it('is the harmonic mean of the mean precision and the mean recall', () => {
      // Of two shingles each, one is shared: precision and recall are a half; the second page is read in full.
      const pages = [
        shingleShares('a b c d e', 'a b c d x'),
        shingleShares('one two three four', 'one, two: three four'),
      ]
      expect(pages[0]).toEqual({ right: 1 / 3, wrong: 1 / 3, missing: 1 / 3 })
      expect(shingleScore(pages)).toEqual({ precision: 0.75, recall: 0.75, f1: 0.75 })
    })

    it('takes a text of fewer than four words as one shingle', () => {
      expect(shingleShares('two words', 'two words')).toEqual({ right: 1, wrong: 0, missing: 0 })
    })

    it('leaves a page that was read as empty out of the precision, not out of the recall', () => {
      const pages = [shingleShares('a b c d', ''), shingleShares('e f g h', 'e f g h')]
      expect(shingleScore(pages)).toMatchObject({ precision: 1, recall: 0.5 })
    })

    it('counts a repeated shingle as often as it stands there', () => {
      expect(shingleShares('a a a a a', 'a a a a')).toEqual({ right: 0.5, wrong: 0, missing: 0.5 })
    })
  })

  describe('F1 over words', () => {
    it('ignores case and order', () => {
      expect(wordF1('One two THREE', 'three one two')).toBe(1)
    })

    it('weighs what is wrong and what is missing', () => {
      expect(wordF1('a b c d', 'a b x')).toBeCloseTo((2 * (2 / 3) * 0.5) / (2 / 3 + 0.5))
    })

    it.each([
      ['', '', 1],
      ['word', '', 0],
      ['', 'word', 0],
    ])('of %j read as %j is %d', (truth, read, expected) => {
      expect(wordF1(truth, read)).toBe(expected)
    })
  })

  describe('text similarity', () => {
    it('counts words and marks in the same order, from both sides', () => {
      expect(textSimilarity('one two, three', 'one two three')).toBeCloseTo(6 / 7)
      expect(textSimilarity('a b c d', 'c d a b')).toBe(0.5)
    })

    it('takes scripts without blanks by their characters', () => {
      expect(textSimilarity('图书馆目录', '图书馆目标')).toBeCloseTo(0.8)
    })

    it('is 1 for the same text however it is broken into lines, and less for any other', () => {
      const words = fc.array(fc.stringMatching(/^[a-d]{1,3}$/), { minLength: 1, maxLength: 30 })
      fc.assert(
        fc.property(words, words, (one, other) => {
          expect(textSimilarity(one.join(' '), one.join('\n  '))).toBe(1)
          const similarity = textSimilarity(one.join(' '), other.join(' '))
          expect(similarity).toBeCloseTo(textSimilarity(other.join(' '), one.join(' ')))
          expect(similarity === 1).toBe(one.join(' ') === other.join(' '))
        }),
      )
    })
  })

  describe('F1 of headings', () => {
    it('needs the words and, as a second figure, the level', () => {
      const counts = headingCounts(
        [heading('One Thing', 1), heading('Two')],
        [heading('one thing!', 2), heading('Other')],
      )
      expect(headingF1([counts])).toBe(0.5)
      expect(headingF1([counts], 'matchedWithLevel')).toBe(0)
    })

    it('counts a heading that stands there twice as two', () => {
      expect(headingCounts([heading('Same'), heading('Same')], [heading('Same')])).toMatchObject({
        truth: 2,
        matched: 1,
      })
    })
  })

  describe('list item recall', () => {
    it('finds each item once, with or without its marker, and tells its depth', () => {
      const truth = [item('First of all the things'), item('Second of the things', 2), item('Third')]
      const read = [item('Second of the things', 1), item('1. First of all the things'), item('Other')]
      expect(itemCounts(truth, read)).toEqual({ truth: 3, matched: 2, matchedWithDepth: 1, spurious: 1 })
    })

    it('does not take a joined pair of items for one of them', () => {
      expect(
        itemCounts([item('one two three'), item('four five six')], [item('one two three four five six')]),
      ).toMatchObject({ matched: 0 })
    })
  })

  describe('distance of trees', () => {
    it('counts nodes taken out, put in and renamed', () => {
      const one = leaf('f', leaf('d', leaf('a'), leaf('c', leaf('b'))), leaf('e'))
      const other = leaf('f', leaf('c', leaf('d', leaf('a'), leaf('b'))), leaf('e'))
      expect(treeDistance(one, other, unlike)).toBe(2)
    })

    it('is what trying every way out gives', () => {
      const nodes = fc.array(fc.record({ label: fc.constantFrom('a', 'b'), parent: fc.nat() }), { maxLength: 6 })
      const trees = nodes.map((list) => {
        const made = [leaf('a')]
        for (const { label, parent } of list) {
          const node = leaf(label)
          made[parent % made.length]?.children.push(node)
          made.push(node)
        }
        return made[0] ?? leaf('a')
      })
      fc.assert(
        fc.property(trees, trees, (one, other) => {
          expect(treeDistance(one, other, unlike)).toBe(slowDistance([one], [other]))
        }),
      )
    })
  })

  const size = (forest: Tree[]): number => forest.reduce((sum, { children }) => sum + 1 + size(children), 0)

  /** By definition: the rightmost tree loses its root on one side or the other, or both roots stand for each other. */
  function slowDistance(one: Tree[], other: Tree[]): number {
    const [last, otherLast] = [one.at(-1), other.at(-1)]
    if (last === undefined || otherLast === undefined) return size(one) + size(other)
    const [rest, otherRest] = [one.slice(0, -1), other.slice(0, -1)]
    return Math.min(
      slowDistance([...rest, ...last.children], other) + 1,
      slowDistance(one, [...otherRest, ...otherLast.children]) + 1,
      slowDistance(rest, otherRest) + slowDistance(last.children, otherLast.children) + unlike(last, otherLast),
    )
  }

  describe('similarity of tables', () => {
    const table = [
      ['Name', 'Count'],
      ['Kettle', '12'],
    ]

    it('is 1 for the same cells', () => {
      expect(
        tableSimilarity(table, [
          ['Name ', 'Count'],
          ['Kettle', '12'],
        ]),
      ).toBe(1)
    })

    it('loses the share of a cell that was read wrong', () => {
      // Seven nodes; half of the characters of one cell are wrong.
      expect(
        tableSimilarity(table, [
          ['Name', 'Count'],
          ['Kettle', '13'],
        ]),
      ).toBeCloseTo(1 - 0.5 / 7)
    })

    it('loses a row that is missing, with its cells', () => {
      expect(tableSimilarity(table, [['Name', 'Count']])).toBeCloseTo(1 - 3 / 7)
    })

    it('pairs tables in their order and counts the ones that are none', () => {
      const other = [
        ['x', 'y'],
        ['z', '1'],
      ]
      expect(pairedTables([table, other], [other, [['q']]])).toMatchObject({ similarities: [0, 1], spurious: 1 })
      expect(pairedTables([table], [other, table])).toEqual({ similarities: [1], spurious: 1 })
      expect(pairedTables([table], [])).toEqual({ similarities: [0], spurious: 0 })
    })
  })

  describe('the text of HTML', () => {
    it('sets blocks apart, joins what stands in a line, and leaves out what is not shown', () => {
      const text = htmlText('<p>O<b>n</b>e</p><p>Two<br>Three &amp; four</p><script>no()</script><style>p{}</style>')
      expect(text.split(/\s*\n\s*/).filter(Boolean)).toEqual(['One', 'Two', 'Three & four'])
    })
  })
})

describe('reading Markdown for scores', () => {
  const paragraph = (text: string): ScoredBlock => ({ type: 'paragraph', text })
  const item = (text: string, depth = 1, ordered = false): ScoredBlock => ({ type: 'item', depth, ordered, text })

  const cases: [string, string, ScoredBlock[]][] = [
    [
      'headings',
      '# One\n\n### Two ##',
      [
        { type: 'heading', level: 1, text: 'One' },
        { type: 'heading', level: 3, text: 'Two' },
      ],
    ],
    ['lines of one paragraph', 'one\ntwo  \nthree', [paragraph('one two three')]],
    ['page markers as nothing', 'one\n\n<!-- page 2 -->\n\ntwo', [paragraph('one'), paragraph('two')]],
    [
      'nested items',
      '- a\n  1. b\n     - c\n- d\n  goes on',
      [item('a'), item('b', 2, true), item('c', 3), item('d goes on')],
    ],
    ['items with four blanks', '*   a\n    *   b\n*   c', [item('a'), item('b', 2), item('c')]],
    [
      'a new list after a paragraph',
      '- a\n  - b\n\ntext\n\n- c',
      [item('a'), item('b', 2), paragraph('text'), item('c')],
    ],
    [
      'code as it is',
      '```js title\n  a  *b*\n\n# no\n```',
      [{ type: 'code', language: 'js', text: '  a  *b*\n\n# no' }],
    ],
    ['a longer fence', '````\n```\n````', [{ type: 'code', language: '', text: '```' }]],
    [
      'tables',
      '| a | b\\|c |\n| --- | :-: |\n| `x|y` |  |\n\nafter',
      [
        {
          type: 'table',
          rows: [
            ['a', 'b|c'],
            ['x|y', ''],
          ],
        },
        paragraph('after'),
      ],
    ],
    [
      'quotations as what they hold',
      '> # a\n> b\n> > c',
      [{ type: 'heading', level: 1, text: 'a' }, paragraph('b'), paragraph('c')],
    ],
    ['a line across as nothing', 'a\n\n---\n\nb', [paragraph('a'), paragraph('b')]],
  ]

  it.each(cases)('takes %s', (_name, source, blocks) => {
    expect(readMarkdown(source).blocks).toEqual(blocks)
  })

  it.each([
    ['**bold** and *italic* and ~~gone~~', 'bold and italic and gone'],
    ['snake_case_name and 2 * 3 * 4', 'snake_case_name and 2 * 3 * 4'],
    ['\\*not\\* \\[a\\] 1\\. C:\\dir', '*not* [a] 1. C:\\dir'],
    ['`` a`b `` and `*x*`', 'a`b and *x*'],
    ['a ` alone', 'a ` alone'],
    ['![alt](https://x.example/i.png) after', 'after'],
    ['a<br>b &amp; c &lt;d', 'a b & c <d'],
    ['[not a link] (here)', '[not a link] (here)'],
    ['x<sup>2</sup>', 'x2'],
  ])('reads %j as %j', (source, text) => {
    expect(readMarkdown(source).blocks).toEqual([paragraph(text)])
  })

  it('tells where links lead', () => {
    const { blocks, links } = readMarkdown(
      'See [**the** guide](https://a.example/x_(y) "Title") or <https://b.example/z>.',
    )
    expect(blocks).toEqual([paragraph('See the guide or https://b.example/z.')])
    expect(links).toEqual([
      { text: 'the guide', url: 'https://a.example/x_(y)' },
      { text: 'https://b.example/z', url: 'https://b.example/z' },
    ])
  })
})

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
    expect(pages).toHaveLength(16)
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

describe('the corpus of office documents', () => {
  const bytesOf = (plan: Plan): string => Buffer.from(makeOfficeDocument(plan).bytes).toString('base64')

  it('is the same each time it is made', () => {
    expect(OFFICE_PLANS.map(bytesOf)).toEqual(OFFICE_PLANS.map(bytesOf))
  })

  it('is read by the engine within every bar', async () => {
    const documents = []
    for (const plan of OFFICE_PLANS.filter((_, index) => index % 6 > 3)) {
      const truth = makeOfficeDocument(plan)
      const input = { bytes: new Uint8Array(truth.bytes), contentType: '', name: '', baseUrl: '' }
      const { markdown } = await readDocument(input, LIMITS)
      documents.push({ kind: truth.kind, score: scoreOffice(truth, markdown) })
    }
    expect(documents).toHaveLength(14)
    expect(missed(officeFigures(documents))).toEqual([])
  })

  it('misses its bars when structure is lost', () => {
    const truth = makeOfficeDocument(OFFICE_PLANS[0] as Plan)
    const text = truth.blocks.map((block) => ('text' in block ? block.text : '')).join('\n\n')
    const figures = officeFigures([{ kind: 'docx', score: scoreOffice(truth, text.replaceAll('$', '')) }])
    expect(missed(figures).map(({ name }) => name)).toEqual(
      expect.arrayContaining([
        'docx: heading F1 with levels',
        'docx: programs read to the character',
        'docx: equations',
      ]),
    )
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

describe('document run', () => {
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
})

const REASON = '{"error":{"message":"Too much.","type":"overloaded_error","code":"overloaded","param":null}}'
const RETRY_LATER = 'HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n\r\n'
const NO_TIME = 'HTTP/1.1 503 Service Unavailable\r\n\r\n'
const OTHER_REASON = '{"error":{"message":"No.","type":"server_error","code":"upstream_error","param":null}}'

interface Second {
  readonly [outcome: string]: number
}

const TOOK_MS: Readonly<Record<string, number>> = { good: 5, late: 1_500 }

/** What became of the requests of each second. */
function tallyOf(seconds: readonly Second[]): Tally {
  const tally = new Tally(0)
  for (const [second, outcomes] of seconds.entries()) {
    for (const [outcome, count] of Object.entries(outcomes)) {
      const dueMs = second * 1_000 + 1
      for (let counted = 0; counted < count; counted++) tally.count(outcome, dueMs, dueMs + (TOOK_MS[outcome] ?? 10))
    }
  }
  return tally
}

interface Load {
  readonly seconds: readonly Second[]
  readonly driverShare?: number
  readonly sentLateMs?: number
}

function loadOf({ seconds, driverShare = 0.3, sentLateMs = 1 }: Load) {
  const tally = tallyOf(seconds)
  tally.sentLateMs.push(sentLateMs)
  const goodPerSecond = tally.total('good') / seconds.length
  const shares = { driverShare, gatewayShare: 1 }
  return { name: 'load', ratePerSecond: 1, goodPerSecond, tally, connections: 1, tookMs: 1, ...shares }
}

const CALM: Load = { seconds: [{ good: 50 }, { good: 50 }] }

interface Loads {
  readonly before?: Load
  readonly below?: Load
  readonly overload?: Load
  readonly recovery?: Load
  readonly after?: Load
}

const SATURATED: Load = { seconds: [{ good: 100 }, { good: 100 }] }

/** A run that by default saturates at 100 a second. */
function reportOf(given: Loads): ReportResult {
  const { before = SATURATED, below = CALM, overload = CALM, recovery = CALM, after = SATURATED } = given
  const machine = { cpu: 'any', cores: 2, node: 'v20', pinned: true }
  const closed = { ratePerSecond: 100, cpuMicroseconds: 1, gatewayShare: 1 }
  const around = { calm: loadOf(CALM), before: loadOf(before), after: loadOf(after) }
  const loads = { ...around, below: loadOf(below), overload: loadOf(overload), recovery: loadOf(recovery) }
  return overloadReport({ machine, mixName: 'mixed', closed, ...loads })
}

const kept: Load = { seconds: [{ good: 80, refused: 220 }] }

describe('An answer of the overload run', () => {
  it.each([
    ['good', { status: 200, isRight: true, isPrompt: true, head: '', refusal: '' }],
    ['late', { status: 200, isRight: true, isPrompt: false, head: '', refusal: '' }],
    ['otherStatus', { status: 200, isRight: false, isPrompt: true, head: '', refusal: '' }],
    ['refused', { status: 503, isRight: false, isPrompt: false, head: RETRY_LATER, refusal: REASON }],
    ['badRefusal', { status: 503, isRight: false, isPrompt: true, head: NO_TIME, refusal: REASON }],
    ['badRefusal', { status: 503, isRight: false, isPrompt: true, head: RETRY_LATER, refusal: '' }],
    ['badRefusal', { status: 503, isRight: false, isPrompt: true, head: RETRY_LATER, refusal: OTHER_REASON }],
    ['otherStatus', { status: 429, isRight: false, isPrompt: true, head: RETRY_LATER, refusal: REASON }],
    ['otherStatus', { status: 500, isRight: true, isPrompt: true, head: '', refusal: '' }],
  ])('counts as %s: %j', (outcome, answer) => {
    expect(outcomeOf(answer)).toBe(outcome)
  })
})

describe('A load of the overload run', () => {
  it.each([0, Number.NaN])('is refused with a rate of %d, as no request of it would ever be due', async (rate) => {
    const phases = [
      { ratePerSecond: 10, durationMs: 10 },
      { ratePerSecond: rate, durationMs: 10 },
    ]
    await expect(openLoads({ port: 9, phases })).rejects.toThrow(`nothing was served in time before a load of ${rate}`)
  })
})

describe('The judge of the overload run', () => {
  it('passes with four fifths of saturation and a refusal for all other requests', () => {
    const { text, code } = reportOf({ overload: kept })
    expect(code).toBe(0)
    expect(text).toContain('KEPT   goodput under overload 80 % of saturation')
    expect(text).toContain('KEPT   recovered after 0 s')
  })

  it.each([
    ['less goodput', { seconds: [{ good: 79, refused: 221 }] }, 'MISSED goodput'],
    ['goodput that came late', { seconds: [{ good: 79, late: 221 }] }, 'MISSED goodput'],
    ['a refusal that does not say when to come back', { seconds: [{ good: 90, badRefusal: 1 }] }, 'MISSED 1 requests'],
    ['a broken connection', { seconds: [{ good: 90, broken: 1 }] }, 'MISSED 1 requests'],
    ['a request without an answer', { seconds: [{ good: 90, unanswered: 1 }] }, 'MISSED 1 requests'],
    ['another error', { seconds: [{ good: 90, otherStatus: 1 }] }, 'MISSED 1 requests'],
  ])('is not content with %s', (_name, overload, words) => {
    const { text, code } = reportOf({ overload })
    expect([code, text]).toEqual([1, expect.stringContaining(words)])
  })

  it.each([
    [100, 90, 76, 'KEPT   goodput under overload 80 % of saturation'],
    [90, 100, 75, 'MISSED goodput under overload 79 % of saturation'],
  ])(
    'takes the middle of a saturation of %i before and %i after for what %i are a share of',
    (before, after, good, words) => {
      const loads = { before: { seconds: [{ good: before }] }, after: { seconds: [{ good: after }] } }
      expect(reportOf({ ...loads, overload: { seconds: [{ good }] } }).text).toContain(words)
    },
  )

  it.each([
    [100, 85, 0],
    [100, 84, 2],
    [84, 100, 2],
  ])('with %i a second before the overload and %i after it gives the code %i', (before, after, code) => {
    const loads = { before: { seconds: [{ good: before }] }, after: { seconds: [{ good: after }] } }
    expect(reportOf({ ...loads, overload: SATURATED }).code).toBe(code)
  })

  it.each([
    [10, 0, 'KEPT   recovered after 10 s'],
    [11, 1, 'MISSED recovered after 11 s'],
  ])('gives %i bad seconds after the overload the code %i', (bad, code, words) => {
    const seconds = Array.from({ length: 15 }, (_, second) => (second < bad ? { good: 49, refused: 1 } : { good: 50 }))
    const result = reportOf({ overload: kept, recovery: { seconds } })
    expect([result.code, result.text]).toEqual([code, expect.stringContaining(words)])
  })

  it('is not content with a refusal below saturation', () => {
    const { text, code } = reportOf({ below: { seconds: [{ good: 84, refused: 1 }] }, overload: kept })
    expect([code, text]).toEqual([1, expect.stringContaining('MISSED 1 requests refused at 85 % of saturation')])
  })

  it('does not call it recovered when the last second was not as before', () => {
    const recovery: Load = { seconds: [{ good: 50 }, { good: 49, late: 1 }] }
    expect(reportOf({ overload: kept, recovery }).text).toContain('MISSED recovered after – s')
  })

  it.each([
    ['the driver had no more to give', { ...kept, driverShare: 0.95 }],
    ['requests were sent late', { ...kept, sentLateMs: 300 }],
    ['there were no connections left', { seconds: [{ good: 80, refused: 219, unsent: 1 }] }],
  ])('calls the run void when %s', (_name, overload) => {
    expect(reportOf({ overload }).code).toBe(2)
  })
})
