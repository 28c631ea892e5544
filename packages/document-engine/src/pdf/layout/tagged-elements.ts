import type { Span, StructureNode } from './layout-model.js'

/** Roles of paragraphs and of elements that hold such (PDF 32000-1, 14.8.4; PDF 2.0 adds some). */
const BLOCK_ROLES = new Set(
  'Document DocumentFragment Part Art Sect Div BlockQuote Caption TOC TOCI Index P H H1 H2 H3 H4 H5 H6 Title L LI LBody Lbl Table THead TBody TFoot TR TH TD Figure Note FENote Aside Form'.split(
    ' ',
  ),
)
/** Their generic children are parts of their text, such as `NonStruct` around each word of a browser's paragraph. */
const TEXT_ROLES = new Set('P H H1 H2 H3 H4 H5 H6 Title LI LBody TOCI TH TD Caption Note FENote'.split(' '))
const INLINE_ROLES = new Set(
  'Span Link Quote Reference Code Em Strong Sub Annot Ruby Warichu Formula BibEntry'.split(' '),
)
const NOTE_ROLES = new Set(['Note', 'FENote'])
const HEADING_PATTERN = /^H([1-6])?$/
/** In em: most distance of baselines within a line with superscripts. */
const SAME_LINE_EM = 0.7
/** Lists within lists beyond this depth are read as one. */
const MOST_LIST_DEPTH = 20

/** A list item that is open while its parts are read. */
export interface TaggedItem {
  /** From 1. */
  readonly depth: number
  /** Empty where the label is drawn, or missing. */
  label: readonly Span[]
  hasLabel: boolean
  /** Whether a paragraph of it was read, so that others are no items of their own. */
  isBegun: boolean
}

interface ElementPlace {
  /** The list item that it stands in. */
  readonly item: TaggedItem | undefined
  /** Whether it opens the item. */
  readonly opensItem: boolean
}

/** A paragraph, heading or caption; `level` is 0 for text, from 1 on for headings. */
export interface TaggedText extends ElementPlace {
  readonly kind: 'text'
  readonly level: number
  readonly role: string
  readonly spans: readonly Span[]
}

export interface TaggedCell {
  readonly isHead: boolean
  readonly spans: readonly Span[]
}

export interface TaggedTable extends ElementPlace {
  readonly kind: 'table'
  readonly rows: readonly (readonly TaggedCell[])[]
}

/** A picture whose text is its description. */
export interface TaggedFigure extends ElementPlace {
  readonly kind: 'figure'
  readonly alt: string
}

export type TaggedElement = TaggedText | TaggedTable | TaggedFigure

/** The elements of a page in the order of its tags, and the ids of their contents. */
export function taggedElements(
  root: StructureNode,
  spans: ReadonlyMap<string, readonly Span[]>,
): { elements: readonly TaggedElement[]; used: ReadonlySet<string> } {
  const walk = new TagWalk(spans)
  walk.container(root)
  walk.flush()
  return walk
}

class TagWalk {
  readonly elements: TaggedElement[] = []
  readonly used = new Set<string>()
  private readonly blocks = new Map<StructureNode, boolean>()
  private open: Span[] = []
  private role = 'P'
  private level = 0
  private sections = 0
  /** Paragraphs within paragraphs that are open. */
  private texts = 0
  /** Footnotes that follow the open paragraph. */
  private readonly notes: StructureNode[] = []
  private depth = 0
  private item: TaggedItem | undefined

  constructor(private readonly spans: ReadonlyMap<string, readonly Span[]>) {}

  /**
   * Children of an element that is no paragraph. Where blocks are among them, or two hold elements of their own, a generic child is
   * a paragraph of its own, unless it goes on in the line of the one before it, or one of both is inline by its role.
   */
  container(node: StructureNode): void {
    const isMixed = this.holdsBlocks(node)
    let isInline = true
    let isHolder = false
    for (const child of node.children) {
      if (typeof child === 'string') this.take(child)
      else if (BLOCK_ROLES.has(child.role) || this.holdsBlocks(child)) this.separate(child)
      else {
        const isNextInline = INLINE_ROLES.has(child.role)
        const isNextHolder = child.children.some((one) => typeof one !== 'string')
        const isApart = isMixed || (isHolder && isNextHolder)
        if (isApart && !isInline && !isNextInline && !this.goesOn(child)) this.flush()
        this.element(child)
        isInline = isNextInline
        isHolder = isNextHolder
      }
    }
  }

  /** Whether the text of an element stands in the line where the open paragraph ends. */
  private goesOn(node: StructureNode): boolean {
    const last = this.open.at(-1)
    const next = this.firstSpan(node)
    if (last === undefined || next === undefined) return false
    return Math.abs(next.y - last.y) < Math.max(last.size, next.size) * SAME_LINE_EM && next.x1 > last.x1
  }

  private firstSpan(node: StructureNode): Span | undefined {
    for (const child of node.children) {
      const span = typeof child === 'string' ? this.spans.get(child)?.[0] : this.firstSpan(child)
      if (span !== undefined) return span
    }
    return undefined
  }

  flush(): void {
    const spans = this.open
    this.open = []
    if (spans.length === 0) return
    this.elements.push({ kind: 'text', level: this.level, role: this.role, spans, ...this.place() })
  }

  private separate(node: StructureNode): void {
    this.flush()
    this.element(node)
    this.flush()
  }

  private element(node: StructureNode): void {
    const { role } = node
    const heading = HEADING_PATTERN.exec(role)
    if (heading !== null) this.text(node, heading[1] === undefined ? Math.max(1, this.sections) : Number(heading[1]))
    else if (role === 'Title') this.text(node, 1)
    else if (role === 'L' || role === 'TOC') this.list(node)
    else if (role === 'LI' || role === 'TOCI') this.listItem(node)
    else if (role === 'Lbl' && this.item !== undefined) this.label(node, this.item)
    else if (role === 'Table') this.table(node)
    else if (role === 'Figure') this.figure(node)
    else if (role === 'Sect') this.section(node)
    else if (TEXT_ROLES.has(role)) this.text(node, 0)
    else if (BLOCK_ROLES.has(role)) this.separateChildren(node)
    else this.container(node)
  }

  private separateChildren(node: StructureNode): void {
    this.flush()
    this.container(node)
    this.flush()
  }

  private section(node: StructureNode): void {
    this.sections += 1
    this.separateChildren(node)
    this.sections -= 1
  }

  private text(node: StructureNode, level: number): void {
    this.flush()
    const outer = { level: this.level, role: this.role }
    this.level = level
    this.role = node.role
    const isOutermost = this.texts === 0
    this.texts += 1
    this.parts(node)
    this.texts -= 1
    this.flush()
    this.level = outer.level
    this.role = outer.role
    if (isOutermost) for (const note of this.notes.splice(0)) this.text(note, 0)
  }

  /** The children of a paragraph: text, and blocks that interrupt it. */
  private parts(node: StructureNode): void {
    for (const child of node.children) {
      if (typeof child === 'string') this.take(child)
      // The number of a footnote stands before its first paragraph.
      else if (NOTE_ROLES.has(node.role) && child.role === 'P' && node.children.slice(0, 2).includes(child))
        this.parts(child)
      // A footnote stands where it is mentioned, within the sentence.
      else if (NOTE_ROLES.has(child.role) && this.open.length > 0) this.notes.push(child)
      else if (BLOCK_ROLES.has(child.role) && (child.role !== 'Lbl' || this.item !== undefined)) this.element(child)
      else this.parts(child)
    }
  }

  private list(node: StructureNode): void {
    this.flush()
    const outer = this.item
    this.depth = Math.min(MOST_LIST_DEPTH, this.depth + 1)
    this.container(node)
    this.flush()
    this.depth -= 1
    this.item = outer
  }

  private listItem(node: StructureNode): void {
    const outer = this.item
    this.flush()
    this.item = { depth: Math.max(1, this.depth), label: [], hasLabel: false, isBegun: false }
    this.text(node, 0)
    this.item = outer
  }

  private label(node: StructureNode, item: TaggedItem): void {
    item.label = [...item.label, ...this.taken(node)]
    item.hasLabel = true
  }

  private table(node: StructureNode): void {
    this.flush()
    const rows = rowsOf(node)
    if (!isDataTable(rows)) {
      this.container(node)
      this.flush()
      return
    }
    for (const child of node.children) {
      if (typeof child === 'string') this.take(child)
      else if (child.role === 'Caption') this.text(child, 0)
    }
    this.flush()
    const cells = rows.map((row) =>
      row.map((cell) => ({ isHead: cell.role === 'TH', spans: this.taken(cell, { withFigures: true }) })),
    )
    this.elements.push({ kind: 'table', rows: cells, ...this.place() })
  }

  private figure(node: StructureNode): void {
    const alt = node.alt.trim()
    // A picture without a word does not interrupt the paragraph around it.
    if (alt === '' && this.firstSpan(node) === undefined) return
    this.flush()
    const before = this.elements.length
    this.container(node)
    this.flush()
    if (this.elements.length === before && alt !== '') this.elements.push({ kind: 'figure', alt, ...this.place() })
  }

  private place(): ElementPlace {
    const { item } = this
    const opensItem = item?.isBegun === false
    if (item !== undefined) item.isBegun = true
    return { item, opensItem }
  }

  private take(id: string): void {
    if (this.used.has(id)) return
    this.used.add(id)
    for (const span of this.spans.get(id) ?? []) this.open.push(span)
  }

  /** All text below an element, apart from the open paragraph. */
  private taken(node: StructureNode, { withFigures = false } = {}): Span[] {
    const outer = this.open
    this.open = []
    const collect = (one: StructureNode): void => {
      for (const child of one.children) {
        if (typeof child === 'string') this.take(child)
        else if (withFigures || child.role !== 'Figure') collect(child)
      }
    }
    collect(node)
    const spans = this.open
    this.open = outer
    return spans
  }

  private holdsBlocks(node: StructureNode): boolean {
    const known = this.blocks.get(node)
    if (known !== undefined) return known
    const holds = node.children.some(
      (child) => typeof child !== 'string' && (BLOCK_ROLES.has(child.role) || this.holdsBlocks(child)),
    )
    this.blocks.set(node, holds)
    return holds
  }
}

const ROW_GROUPS = new Set(['THead', 'TBody', 'TFoot', 'NonStruct', 'Div'])

function rowsOf(table: StructureNode): StructureNode[][] {
  return elementsOf(table).flatMap((child) => {
    if (child.role === 'TR') return [cellsOf(child)]
    return ROW_GROUPS.has(child.role) ? rowsOf(child) : []
  })
}

const cellsOf = (row: StructureNode): StructureNode[] =>
  elementsOf(row).filter((cell) => cell.role === 'TD' || cell.role === 'TH')

const elementsOf = (node: StructureNode): StructureNode[] =>
  node.children.filter((child): child is StructureNode => typeof child !== 'string')

/** Whether rows and columns hold data: tables that only lay out a page have one of either, or headings and tables in their cells. */
function isDataTable(rows: readonly (readonly StructureNode[])[]): boolean {
  const columns = rows.reduce((most, row) => Math.max(most, row.length), 0)
  if (rows.length < 2 || columns < 2) return false
  return !rows.flat().some((cell) => cell.role === 'TD' && holdsParts(cell))
}

function holdsParts(cell: StructureNode): boolean {
  return elementsOf(cell).some(
    (child) => child.role === 'Table' || HEADING_PATTERN.test(child.role) || holdsParts(child),
  )
}
