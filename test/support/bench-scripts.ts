/** The plain modules of bench/overload, with types for those who test them. */
const loadScript = (path: string): Promise<unknown> =>
  import(new URL(`../../bench/overload/${path}`, import.meta.url).href) as Promise<unknown>

export interface Tally {
  readonly sentLateMs: number[]
  count(outcome: string, dueMs: number, nowMs: number): void
  total(outcome: string): number
}

export interface ReportResult {
  readonly text: string
  readonly code: number
}

export interface JudgedAnswer {
  readonly status: number
  readonly isRight: boolean
  readonly isPrompt: boolean
  readonly head: string
  readonly refusal: string
}

export const { Tally } = (await loadScript('tally.mjs')) as { Tally: new (startMs: number) => Tally }
export const { openLoads, outcomeOf } = (await loadScript('open-load.mjs')) as {
  openLoads: (load: object) => Promise<readonly object[]>
  outcomeOf: (answer: JudgedAnswer) => string
}
export const { overloadReport } = (await loadScript('overload-report.mjs')) as {
  overloadReport: (run: object) => ReportResult
}

/** The plain modules of bench/documents, with types for those who test them. */
const load = (path: string): Promise<unknown> =>
  import(new URL(`../../bench/documents/${path}`, import.meta.url).href) as Promise<unknown>

export type ScoredBlock =
  | { type: 'heading'; level: number; text: string }
  | { type: 'paragraph'; text: string }
  | { type: 'item'; depth: number; ordered: boolean; text: string }
  | { type: 'code'; language: string; text: string }
  | { type: 'table'; rows: string[][]; rules?: string }
export interface Link {
  text: string
  url: string
}
export interface Figure {
  name: string
  value: number
  bar?: { least?: number; most?: number }
  met?: boolean
}
export interface Tree {
  label: string
  children: Tree[]
}
interface Truth {
  name: string
  bytes: Buffer
  markdown: string
  blocks: ScoredBlock[]
  links: Link[]
}
export interface Plan {
  name: string
}
export interface ReaderAnswer {
  output?: unknown
  fault?: string
  error?: string
  late?: boolean
  crashed?: boolean
}
interface Shares {
  right: number
  wrong: number
  missing: number
}
type Compare = (truth: string, read: string) => number

export const { shingleShares, shingleScore } = (await load('scores/shingles.mjs')) as {
  shingleShares: (truth: string, read: string) => Shares
  shingleScore: (pages: Shares[]) => { precision: number; recall: number; f1: number }
}
export const { wordF1 } = (await load('scores/word-f1.mjs')) as { wordF1: Compare }
export const { textSimilarity } = (await load('scores/text-similarity.mjs')) as { textSimilarity: Compare }
export const { treeDistance } = (await load('scores/tree-distance.mjs')) as {
  treeDistance: (one: Tree, other: Tree, costOf: (one: Tree, other: Tree) => number) => number
}
export const { tableSimilarity, pairedTables } = (await load('scores/table-similarity.mjs')) as {
  tableSimilarity: (truth: string[][], read: string[][]) => number
  pairedTables: (truth: string[][][], read: string[][][]) => { similarities: number[]; spurious: number }
}
export const { headingCounts, headingF1, itemCounts } = (await load('scores/structure.mjs')) as {
  headingCounts: (truth: ScoredBlock[], read: ScoredBlock[]) => Record<string, number>
  headingF1: (counts: Record<string, number>[], matched?: string) => number
  itemCounts: (truth: ScoredBlock[], read: ScoredBlock[]) => Record<string, number>
}
export const { readMarkdown } = (await load('scores/read-markdown.mjs')) as {
  readMarkdown: (source: string) => { blocks: ScoredBlock[]; links: Link[] }
}
export const { htmlText } = (await load('scores/html-text.mjs')) as { htmlText: (html: string) => string }
export const { scoreDocument } = (await load('scores/document-score.mjs')) as {
  scoreDocument: (truth: Truth, markdown: string) => unknown
}
export const { makePdf, PLANS } = (await load('pdf/corpus.mjs')) as {
  makePdf: (plan: Plan) => Promise<Truth & { columns: number }>
  PLANS: Plan[]
}
export const { makePage, PAGES } = (await load('html/corpus.mjs')) as {
  makePage: (page: Plan) => Truth & { url: string }
  PAGES: Plan[]
}
export const { pdfFigures } = (await load('measure/own-pdf.mjs')) as {
  pdfFigures: (documents: { columns: number; score: unknown }[]) => Figure[]
}
export const { htmlFigures, scorePage } = (await load('measure/own-html.mjs')) as {
  htmlFigures: (pages: { score: unknown }[]) => Figure[]
  scorePage: (page: Truth, output: { html: string; markdown: string }) => unknown
}
export const { makeOfficeDocument, OFFICE_PLANS } = (await load('office/corpus.mjs')) as {
  makeOfficeDocument: (plan: Plan) => Truth & { kind: string }
  OFFICE_PLANS: Plan[]
}
export const { officeFigures, scoreOffice } = (await load('measure/own-office.mjs')) as {
  officeFigures: (documents: { kind: string; score: unknown }[]) => Figure[]
  scoreOffice: (truth: Truth, markdown: string) => unknown
}
export const { DocumentReader } = (await load('reading/document-reader.mjs')) as {
  DocumentReader: new (enginePath: string) => {
    peakBytes: number
    read: (input: object, limitMs: number) => Promise<ReaderAnswer>
    stop: () => Promise<void>
  }
}
