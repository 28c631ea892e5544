import { blocksOf } from './blocks.js'
import type { DocumentStyle } from './document-style.js'
import type { Block, Line, Marker, Region, TextBlock } from './layout-model.js'
import { isLeaderLine } from './line-text.js'
import { readMarker } from './list-markers.js'
import { makeLine } from './lines.js'
import { labelLine, type PageElement, type TaggedPage, type TextElement } from './tagged-page.js'

/** Indents of items by depth, in points, wider than any page: those of paragraphs are read off the page. */
const ITEM_INDENT = 1_000_000
const INDENT_STEP = 1000
const TEXT_STEP = 500

const BULLET: Marker = { kind: 'bullet', label: '-', style: '•', ordinal: 1 }

/** The blocks of a page, and the levels of those that its tags call headings. */
interface TaggedBlocks {
  readonly blocks: readonly Block[]
  readonly headings: ReadonlyMap<TextBlock, number>
}

/** @param page without the lines of running heads */
export function taggedBlocks(page: TaggedPage, number: number, style: DocumentStyle): TaggedBlocks {
  const builder = new TaggedBlockBuilder(page, number, style)
  return builder.build()
}

class TaggedBlockBuilder {
  private readonly blocks: Block[] = []
  private readonly headings = new Map<TextBlock, number>()
  private readonly region: Region

  constructor(
    private readonly page: TaggedPage,
    private readonly number: number,
    private readonly style: DocumentStyle,
  ) {
    const lines = page.elements.flatMap((element) => (element.kind === 'text' ? element.lines : []))
    this.region = {
      page: number,
      items: [],
      left: lines.reduce((least, line) => Math.min(least, line.x1), Infinity),
      right: lines.reduce((most, line) => Math.max(most, line.x2), -Infinity),
    }
  }

  build(): TaggedBlocks {
    const rest = [...this.page.rest]
    for (const element of this.page.elements) {
      const top = topOf(element)
      const above: Line[] = []
      while (rest[0] !== undefined && rest[0].y < top) above.push(...rest.splice(0, 1))
      this.addRest(above)
      this.add(element)
    }
    this.addRest(rest)
    return { blocks: this.blocks, headings: this.headings }
  }

  private addRest(lines: readonly Line[]): void {
    if (lines.length === 0) return
    const left = lines.reduce((least, line) => Math.min(least, line.x1), Infinity)
    const right = lines.reduce((most, line) => Math.max(most, line.x2), -Infinity)
    for (const block of blocksOf({ page: this.number, items: lines, left, right }, this.style)) this.blocks.push(block)
  }

  private add(element: PageElement): void {
    const { page, region } = { page: this.number, region: this.region }
    if (element.kind === 'table') this.blocks.push({ kind: 'table', page, region, table: element.table })
    else if (element.level > 0) this.addHeading(element)
    else if (this.isCode(element)) this.addCode(element.lines)
    else if (element.role === 'TOCI' || element.lines.every(isLeaderLine)) this.addEntries(element)
    else if (element.item !== undefined) this.addItem(element)
    else this.addText(element.lines)
  }

  private isCode({ lines }: TextElement): boolean {
    return !this.style.isBodyFixedPitch && lines.every((line) => line.isFixedPitch)
  }

  /** Some programs tag each line of a listing as a paragraph. */
  private addCode(lines: readonly Line[]): void {
    const last = this.blocks.at(-1)
    const isNext = last?.kind === 'code' && last.page === this.number && isBelow(last.lines.at(-1), lines[0])
    if (isNext) this.blocks[this.blocks.length - 1] = { ...last, lines: [...last.lines, ...lines] }
    else this.blocks.push({ kind: 'code', page: this.number, region: this.region, lines })
  }

  private addHeading(element: TextElement): void {
    const { item, opensItem } = element
    const label = item !== undefined && opensItem ? labelLine(item, this.number) : undefined
    const [first, ...others] = element.lines
    // A numbered heading is an item of a list for some programs.
    const isNumbered = label !== undefined && /\d/.test(label.text) && first !== undefined
    const numbered = isNumbered ? [makeLine([...label.spans, ...first.spans], this.number), ...others] : element.lines
    const block = this.textBlock(numbered, undefined)
    this.headings.set(block, element.level)
    this.blocks.push(block)
  }

  private addText(lines: readonly Line[]): void {
    const marked = lines[0] === undefined ? undefined : readMarker(lines[0])
    if (marked?.isCertain === true && marked.text !== undefined) {
      this.blocks.push(this.textBlock([marked.text, ...lines.slice(1)], marked.marker, lines[0]?.x1))
    } else this.blocks.push(this.textBlock(lines, undefined))
  }

  private addEntries({ lines, item, opensItem }: TextElement): void {
    const label = item !== undefined && opensItem ? labelLine(item, this.number) : undefined
    for (const [index, line] of lines.entries()) {
      const isNumbered = index === 0 && label !== undefined
      const whole = isNumbered ? makeLine([...label.spans, ...line.spans], this.number) : line
      this.blocks.push(this.textBlock([whole], BULLET))
    }
  }

  private addItem(element: TextElement): void {
    const { item, lines } = element
    if (item === undefined) return
    const indent = ITEM_INDENT + item.depth * INDENT_STEP
    const place = { indent, textIndent: indent + TEXT_STEP }
    if (!element.opensItem || this.isRestOfItem(element)) {
      this.blocks.push({ ...this.textBlock(lines, undefined), indent: place.textIndent, textIndent: place.textIndent })
      return
    }
    const label = labelLine(item, this.number)
    const own = item.hasLabel || lines[0] === undefined ? undefined : readMarker(lines[0])
    const marker = (label === undefined ? own?.marker : readMarker(label)?.marker) ?? BULLET
    const shown = own?.text === undefined ? lines : [own.text, ...lines.slice(1)]
    // A label that is no usual marker, such as the number of a reference, is text.
    const isOdd = label !== undefined && marker === BULLET && /[\p{L}\p{N}]/u.test(label.text)
    const [first, ...others] = shown
    const whole =
      isOdd && first !== undefined ? [makeLine([...label.spans, ...first.spans], this.number), ...others] : shown
    this.blocks.push({ ...this.textBlock(whole, marker), ...place })
  }

  /** Whether an item without label began on the page before: the first text of a page, in a list that has labels. */
  private isRestOfItem({ item, lines }: TextElement): boolean {
    if (item === undefined || item.hasLabel || this.blocks.some(({ kind }) => kind === 'text')) return false
    return lines[0] !== undefined && readMarker(lines[0]) === undefined
  }

  private textBlock(lines: readonly Line[], marker: Marker | undefined, x = lines[0]?.x1 ?? 0): TextBlock {
    const indent = x - this.region.left
    const textIndent = (lines[0]?.x1 ?? x) - this.region.left
    const { number: page, region } = this
    return { kind: 'text', page, region, lines, marker, indent, textIndent, isSetOff: true }
  }
}

const topOf = (element: PageElement): number =>
  element.kind === 'table' ? element.table.top : (element.lines[0]?.top ?? Infinity)

const MOST_LINE_DISTANCE_EM = 4

function isBelow(above: Line | undefined, line: Line | undefined): boolean {
  if (above === undefined || line === undefined) return false
  return line.y > above.y && line.y - above.y < MOST_LINE_DISTANCE_EM * line.size
}
