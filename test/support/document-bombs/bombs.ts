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
  drawnDoubling,
  endlessPageTree,
  hugeCharacterMap,
  hugeDeclarations,
  hugePicture,
  hugePredictor,
  manyPages,
  stackedFlate,
} from './pdf-bombs.js'

/** Refused: nothing can be read. Defused: what is harmless about it may be read, if that takes neither time nor memory. */
export type Expectation = 'refused' | 'defused'

export interface Bomb {
  readonly name: string
  readonly expectation: Expectation
  readonly contentType: string
  readonly make: () => Buffer
}

const bombs = (contentType: string, rows: readonly (readonly [string, Expectation, () => Buffer])[]): Bomb[] =>
  rows.map(([name, expectation, make]) => ({ name, expectation, contentType, make }))

const WORD = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'

/** Documents that are made to end their reader. */
export const BOMBS: readonly Bomb[] = [
  ...bombs('application/pdf', [
    ['a PDF of two stacked Flate filters', 'refused', stackedFlate],
    ['a PDF of 200,000 pages', 'refused', manyPages],
    ['a PDF that says it has 100,000,000 pages', 'defused', claimedPages],
    ['a PDF whose tree of pages is its own branch', 'refused', endlessPageTree],
    ['a PDF with a picture of 10,000,000,000 pixels', 'defused', hugePicture],
    ['a PDF with a predictor of 2,000,000,000 columns', 'defused', hugePredictor],
    ['a PDF that lies about every length', 'defused', hugeDeclarations],
    ['a PDF whose forms draw each other 2^40 times', 'defused', drawnDoubling],
    ['a PDF with character maps of every number', 'defused', hugeCharacterMap],
    ['a PDF with a font that inflates without end', 'defused', brokenFont],
  ]),
  ...bombs(WORD, [
    ['a DOCX that inflates to a gibibyte', 'refused', honestArchive],
    ['a DOCX that does so but says otherwise', 'refused', lyingArchive],
    ['a DOCX of 24 MB of paragraphs', 'defused', packedParagraphs],
    ['a DOCX of 60,000 parts', 'refused', manyParts],
    ['a DOCX whose entities expand', 'refused', expandingEntities],
    ['a DOCX of 100,000 nested tables', 'refused', nestedTables],
    ['an XLSX with cells in its corners', 'defused', farCells],
  ]),
  ...bombs('text/html', [
    ['1,000,000 nested elements', 'defused', () => nestedElements('div')],
    ['1,000,000 nested formatting elements', 'defused', () => nestedElements('b')],
    ['1,000,000 nested tables', 'defused', () => nestedElements('table')],
    ['1,000,000 nested drawings', 'defused', () => nestedElements('svg')],
    ['4,500,000 elements side by side', 'defused', manyElements],
    ['formatting that is opened anew 60,000 times', 'defused', reopenedFormatting],
    ['1,000,000 attributes', 'defused', manyAttributes],
    ['cells that span one another', 'defused', spanningCells],
    ['a page whose entities expand', 'defused', expandingPage],
    ['10 MB of unfinished tags', 'defused', () => unfinished('<')],
    ['10 MB of unfinished comments', 'defused', () => unfinished('<!--')],
    ['10 MB of unfinished links', 'defused', () => unfinished('<a href="')],
    ['10 MB of unfinished cells', 'defused', () => unfinished('<table><tr><td>')],
  ]),
]
