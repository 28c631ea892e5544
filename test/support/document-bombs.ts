import {
  expandingPage,
  manyAttributes,
  manyElements,
  nestedElements,
  reopenedFormatting,
  spanningCells,
  unfinished,
} from './markup-bombs.js'
import {
  bracketFormat,
  expandingEntities,
  farCells,
  honestArchive,
  lyingArchive,
  manyParts,
  nestedTables,
  packedParagraphs,
} from './office-bombs.js'
import {
  brokenFont,
  claimedPages,
  dottedLine,
  drawnDoubling,
  endlessPageTree,
  hugeCharacterMap,
  hugeDeclarations,
  hugePicture,
  hugePredictor,
  manyPages,
  stackedFlate,
} from './pdf-bombs.js'

/** Nothing tells these beforehand: whichever of memory and time is used up first ends their reader. */
const EXHAUSTING = [422, 504] as const

export interface Bomb {
  readonly name: string
  /** What it is answered with: 200 where what is harmless about it is read. */
  readonly statuses: readonly number[]
  readonly contentType: string
  readonly make: () => Buffer
}

type Row = readonly [name: string, status: number | typeof EXHAUSTING, make: () => Buffer]

const bombs = (contentType: string, rows: readonly Row[]): Bomb[] =>
  rows.map(([name, status, make]) => ({
    name,
    statuses: typeof status === 'number' ? [status] : status,
    contentType,
    make,
  }))

const WORD = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'

/** Documents that are made to end their reader. */
export const BOMBS: readonly Bomb[] = [
  ...bombs('application/pdf', [
    ['a PDF of two stacked Flate filters', EXHAUSTING, stackedFlate],
    ['a PDF of 200,000 pages', EXHAUSTING, manyPages],
    ['a PDF that says it has 100,000,000 pages', 200, claimedPages],
    ['a PDF whose tree of pages is its own branch', 422, endlessPageTree],
    ['a PDF with a picture of 10,000,000,000 pixels', 200, hugePicture],
    ['a PDF with a predictor of 2,000,000,000 columns', 422, hugePredictor],
    ['a PDF that lies about every length', 200, hugeDeclarations],
    ['a PDF whose forms draw each other 2^40 times', EXHAUSTING, drawnDoubling],
    ['a PDF with character maps of every number', 200, hugeCharacterMap],
    ['a PDF with a font that inflates without end', EXHAUSTING, brokenFont],
    ['a PDF of dots that lead nowhere', 200, dottedLine],
  ]),
  ...bombs(WORD, [
    ['a DOCX that inflates to a gibibyte', 413, honestArchive],
    ['a DOCX that does so but says otherwise', 413, lyingArchive],
    ['a DOCX of 24 MB of paragraphs', 413, packedParagraphs],
    ['a DOCX of 60,000 parts', 413, manyParts],
    ['a DOCX whose entities expand', 422, expandingEntities],
    ['a DOCX of 100,000 nested tables', 413, nestedTables],
    ['an XLSX with cells in its corners', 200, farCells],
    ['an XLSX whose number format is all brackets', 200, bracketFormat],
  ]),
  ...bombs('text/html', [
    ['1,000,000 nested elements', 413, () => nestedElements('div')],
    ['1,000,000 nested formatting elements', 200, () => nestedElements('b')],
    ['1,000,000 nested tables', 413, () => nestedElements('table')],
    ['1,000,000 nested drawings', 422, () => nestedElements('svg')],
    ['4,500,000 elements side by side', 413, manyElements],
    ['formatting that is opened anew 60,000 times', 422, reopenedFormatting],
    ['1,000,000 attributes', 200, manyAttributes],
    ['cells that span one another', EXHAUSTING, spanningCells],
    ['a page whose entities expand', 200, expandingPage],
    ['10 MB of unfinished tags', EXHAUSTING, () => unfinished('<')],
    ['10 MB of unfinished comments', 422, () => unfinished('<!--')],
    ['10 MB of unfinished links', 422, () => unfinished('<a href="')],
    ['10 MB of unfinished cells', 413, () => unfinished('<table><tr><td>')],
  ]),
]
