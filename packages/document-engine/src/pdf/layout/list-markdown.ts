import type { TextBlock } from './layout-model.js'

const TOLERANCE_EM = 0.6

interface Level {
  readonly indent: number
  readonly textIndent: number
  readonly style: string
  /** Blanks in front of what stands below the item. */
  readonly inset: number
}

/** Nesting of list items by how far their markers stand inside; a paragraph outside ends all lists. */
export class ListNesting {
  private levels: Level[] = []

  /** Blanks in front of the item. */
  enter(block: TextBlock): string {
    const { marker } = block
    if (marker === undefined) return ''
    const tolerance = TOLERANCE_EM * (block.lines[0]?.size ?? 10)
    this.leave(block.indent, tolerance)
    const last = this.levels.at(-1)
    const isNested = last !== undefined && block.indent > last.indent + tolerance
    if (!isNested && last !== undefined) this.levels.pop()
    const outer = this.levels.at(-1)?.inset ?? 0
    const inset = outer + marker.label.length + 1
    this.levels.push({ indent: block.indent, textIndent: block.textIndent, style: marker.style, inset })
    return ' '.repeat(outer)
  }

  /** Blanks in front of a paragraph that stands in an open item; undefined when it ends the list. */
  insetOf(block: TextBlock): string | undefined {
    const tolerance = TOLERANCE_EM * (block.lines[0]?.size ?? 10)
    const [first, second] = block.lines
    // A first line indented as far as the items' text does not make the paragraph a part of the item.
    const isWholly = first === undefined || second === undefined || second.x1 > first.x1 - tolerance
    if (!isWholly) return undefined
    const level = this.levels.findLast((one) => Math.abs(one.textIndent - block.indent) < tolerance)
    return level === undefined || level.textIndent < tolerance ? undefined : ' '.repeat(level.inset)
  }

  end(): void {
    this.levels = []
  }

  get isOpen(): boolean {
    return this.levels.length > 0
  }

  private leave(indent: number, tolerance: number): void {
    while (this.levels.length > 1 && (this.levels.at(-1)?.indent ?? 0) > indent + tolerance) this.levels.pop()
  }
}
