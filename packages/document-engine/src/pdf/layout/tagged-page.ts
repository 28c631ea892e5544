import { ARTIFACT, type Cell, type Line, type Span, type StructureNode, type Table } from './layout-model.js'
import { makeLine } from './lines.js'
import { cellLines } from './table-cells.js'
import {
  type TaggedCell,
  type TaggedElement,
  taggedElements,
  type TaggedItem,
  type TaggedTable,
} from './tagged-elements.js'

/** Least share of a page's characters that its tags must hold to be followed. */
const LEAST_TAGGED_SHARE = 0.9
/** Most share of characters that the file may declare to be no content. */
const MOST_ARTIFACT_SHARE = 0.3
/** A short page may consist of little more than its running heads. */
const FEW_CHARACTERS = 300
/** Share of the page's height, at its top and bottom, where running heads stand. */
const MARGIN_SHARE = 0.12
/** Most elements that may stand above the one before them in the same column, as a share of all. */
const MOST_BACKWARD_SHARE = 0.15
const FEW_BACKWARD = 3
/** A page whose text is tagged as one or two paragraphs of so many lines has no useful tags. */
const MOST_LINES_PER_ELEMENT = 40

interface ElementPlace {
  readonly item: TaggedItem | undefined
  readonly opensItem: boolean
}

export interface TextElement extends ElementPlace {
  readonly kind: 'text'
  /** From 1 on for headings; 0 for other text. */
  readonly level: number
  readonly role: string
  readonly lines: readonly Line[]
}

export interface TableElement extends ElementPlace {
  readonly kind: 'table'
  readonly table: Table
}

export type PageElement = TextElement | TableElement

/** A page whose tags are followed. */
export interface TaggedPage {
  readonly elements: readonly PageElement[]
  /** Lines outside of the tags, from the top. */
  readonly rest: readonly Line[]
}

interface Sheet {
  readonly number: number
  readonly height: number
  readonly structure?: StructureNode | undefined
}

/** The page by its tags; undefined where these do not hold its text, or hold it in an order that cannot be meant. */
export function taggedPage(sheet: Sheet, spans: readonly Span[]): TaggedPage | undefined {
  if (sheet.structure === undefined) return undefined
  const byId = spansById(spans)
  const { elements, used } = taggedElements(sheet.structure, byId)
  const artifacts = byId.get(ARTIFACT) ?? []
  const loose = spans.filter((span) => span.contentId !== ARTIFACT && !used.has(span.contentId ?? ''))
  if (!isCovered(charactersOf(spans), charactersOf(loose), charactersOf(artifacts))) return undefined
  const placed: PageElement[] = []
  for (const element of elements) {
    const next = pageElement(element, sheet.number, placed.at(-1))
    if (next !== undefined) placed.push(next)
  }
  if (placed.length === 0 || isOutOfOrder(placed) || isOneBlock(placed) || isImplausible(placed)) return undefined
  // The rest is no text but leaders and rules of dots or dashes.
  const kept = artifacts.filter((span) => !isInMargin(span, sheet.height) && /[\p{L}\p{N}]/u.test(span.text))
  return { elements: placed, rest: cellLines([...loose, ...kept], sheet.number) }
}

/** Whether a page has an element that says more than the order of its text. */
export const isTelling = ({ elements }: TaggedPage): boolean =>
  elements.some((element) => element.kind === 'table' || element.level > 0 || element.item !== undefined)

function spansById(spans: readonly Span[]): Map<string, Span[]> {
  const byId = new Map<string, Span[]>()
  for (const span of spans) {
    if (span.contentId === undefined) continue
    const known = byId.get(span.contentId)
    if (known === undefined) byId.set(span.contentId, [span])
    else known.push(span)
  }
  return byId
}

const charactersOf = (spans: readonly Span[]): number => spans.reduce((sum, span) => sum + span.text.length, 0)

function isCovered(all: number, loose: number, artifacts: number): boolean {
  if (all - artifacts === 0 || loose > (all - artifacts) * (1 - LEAST_TAGGED_SHARE)) return false
  return artifacts <= Math.max(FEW_CHARACTERS, all * MOST_ARTIFACT_SHARE)
}

function isInMargin(span: Span, height: number): boolean {
  return span.y < height * MARGIN_SHARE || span.y > height * (1 - MARGIN_SHARE)
}

function pageElement(element: TaggedElement, page: number, above: PageElement | undefined): PageElement | undefined {
  const { item, opensItem } = element
  if (element.kind === 'table') {
    const table = tableOf(element, page)
    return table === undefined ? undefined : { kind: 'table', table, item, opensItem }
  }
  if (element.kind === 'figure') {
    return { kind: 'text', level: 0, role: 'Figure', lines: [describedLine(element.alt, page, above)], item, opensItem }
  }
  const lines = flowLines(element.spans, page)
  return { kind: 'text', level: element.level, role: element.role, lines, item, opensItem }
}

/** The description of a picture, as if it were printed below what stands before it. */
function describedLine(alt: string, page: number, above: PageElement | undefined): Line {
  const [line] = above?.kind === 'text' ? above.lines : []
  const { x1, x2, bottom } = above === undefined ? { x1: 0, x2: 0, bottom: 0 } : boxOf(above)
  const size = line?.size ?? 10
  const look = { size, font: '', isBold: false, isItalic: false, isFixedPitch: false }
  const plain = { url: '', script: 'base' as const, hasBlankBefore: false }
  return makeLine([{ text: alt.replace(/\s+/gu, ' '), x1, x2, y: bottom + size, ...look, ...plain }], page)
}

/** Least rise, in em, of text that goes on in the next column. */
const COLUMN_RISE_EM = 1.5

/** Lines of a paragraph, which may go on at the top of another column. */
function flowLines(spans: readonly Span[], page: number): Line[] {
  const parts: Span[][] = []
  let lowest = -Infinity
  for (const span of spans) {
    const isHigher = span.y < lowest - COLUMN_RISE_EM * span.size
    if (parts.length === 0 || isHigher) parts.push([])
    lowest = isHigher ? span.y : Math.max(lowest, span.y)
    parts.at(-1)?.push(span)
  }
  return parts.flatMap((part) => [...cellLines(part, page)])
}

/** Whether elements often stand above the one before them in the same column: the order of tags is then by chance. */
function isOutOfOrder(elements: readonly PageElement[]): boolean {
  let backward = 0
  let above: Box | undefined
  for (const element of elements) {
    const box = boxOf(element)
    const isBeside = above !== undefined && Math.min(above.x2, box.x2) - Math.max(above.x1, box.x1) <= 0
    if (above !== undefined && !isBeside && box.bottom <= above.top) backward += 1
    above = box
  }
  return backward > Math.max(FEW_BACKWARD, elements.length * MOST_BACKWARD_SHARE)
}

function isOneBlock(elements: readonly PageElement[]): boolean {
  const lines = elements.reduce((sum, element) => sum + (element.kind === 'text' ? element.lines.length : 0), 0)
  return elements.every(({ kind }) => kind === 'text') && lines > elements.length * MOST_LINES_PER_ELEMENT
}

/** A page of so many elements that are headings for the most part is a form, whose labels have no better tag. */
const MANY_ELEMENTS = 12
/** Least number, and share, of paragraphs with blank lines in them that cannot be meant. */
const FEW_GAPPED = 3
const GAPPED_SHARE = 0.2
/** In em, and in line distances of the paragraph: a blank line. */
const GAP_EM = 2
const GAP_RATIO = 1.6

function isImplausible(elements: readonly PageElement[]): boolean {
  const texts = elements.filter((element): element is TextElement => element.kind === 'text')
  const headings = texts.filter(({ level }) => level > 0).length
  const gapped = texts.filter(({ lines }) => hasGap(lines)).length
  return (
    (texts.length >= MANY_ELEMENTS && headings * 2 > texts.length) ||
    gapped > Math.max(FEW_GAPPED - 1, texts.length * GAPPED_SHARE)
  )
}

function hasGap(lines: readonly Line[]): boolean {
  const distances = lines.slice(1).map((line, index) => line.y - (lines[index]?.y ?? 0))
  const downwards = distances.filter((distance) => distance > 0)
  const least = downwards.reduce((min, distance) => Math.min(min, distance), Infinity)
  return downwards.some((distance) => distance > GAP_RATIO * least && distance > GAP_EM * (lines[0]?.size ?? 10))
}

interface Box {
  readonly x1: number
  readonly x2: number
  readonly top: number
  readonly bottom: number
}

const boxOf = (element: PageElement): Box => (element.kind === 'table' ? element.table : extentOf(element.lines))

function extentOf(lines: readonly Box[]): Box {
  return {
    x1: lines.reduce((least, line) => Math.min(least, line.x1), Infinity),
    x2: lines.reduce((most, line) => Math.max(most, line.x2), -Infinity),
    top: lines.reduce((least, line) => Math.min(least, line.top), Infinity),
    bottom: lines.reduce((most, line) => Math.max(most, line.bottom), -Infinity),
  }
}

/** Undefined without text on this page. pdf.js names the rows of all pages; those of others are empty here. */
function tableOf(element: TaggedTable, page: number): Table | undefined {
  const rows = element.rows
    .map((row) => row.map((cell): Cell => flowLines(cell.spans, page)))
    .filter((row) => row.some((cell) => cell.length > 0))
  const lines = rows.flat(2)
  if (lines.length === 0) return undefined
  const isContinued = hasText(element.rows.at(0)) ? false : !isHeadRow(element.rows.find(hasText))
  return { kind: 'table', page, rows: alignedRows(rows), isContinued, ...extentOf(lines) }
}

const hasText = (row: readonly TaggedCell[] | undefined): boolean => row?.some(({ spans }) => spans.length > 0) === true

const isHeadRow = (row: readonly TaggedCell[] | undefined): boolean => row?.every(({ isHead }) => isHead) === true

/** Puts the cells of shorter rows, beside or below cells that span, into the columns where their text stands. */
function alignedRows(rows: readonly (readonly Cell[])[]): readonly (readonly Cell[])[] {
  const count = rows.reduce((most, row) => Math.max(most, row.length), 0)
  const columns = columnsOf(rows.filter((row) => row.length === count))
  return rows.map((row) => (row.length === count ? row : spread(row, columns)))
}

interface Column {
  readonly x1: number
  readonly x2: number
}

function columnsOf(rows: readonly (readonly Cell[])[]): Column[] {
  return (rows[0] ?? []).map((_, index) => extentOf(rows.flatMap((row) => row[index] ?? [])))
}

function spread(row: readonly Cell[], columns: readonly Column[]): Cell[] {
  const cells: Cell[] = columns.map(() => [])
  let next = 0
  for (const [index, cell] of row.entries()) {
    const last = columns.length - (row.length - index)
    const at = bestColumn(cell, columns, next, last)
    cells[at] = cell
    next = at + 1
  }
  return cells
}

/** From `first` to `last`, the first column under the start of the cell; `first` when there is none. */
function bestColumn(cell: Cell, columns: readonly Column[], first: number, last: number): number {
  if (cell.length === 0) return first
  const { x1, x2 } = extentOf(cell)
  for (let at = first; at <= last; at += 1) {
    const column = columns[at]
    if (column !== undefined && column.x1 < x2 && column.x2 > x1) return at
  }
  return first
}

/** The label of an item as one line; undefined where it is drawn. */
export function labelLine(item: TaggedItem, page: number): Line | undefined {
  return item.label.length === 0 ? undefined : makeLine(item.label, page)
}
