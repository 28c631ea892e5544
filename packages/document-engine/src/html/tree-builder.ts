import { EngineFault } from '../model/document.js'
import { HtmlElement, HtmlText } from './html-node.js'
import { BLOCK_TAGS, FORMATTING_TAGS, IMPLIED_ENDS, SCOPE_TAGS, VOID_TAGS } from './tag-rules.js'

/** Deeper elements are left out and what they hold stays; all that follows may recur over the tree. */
export const DEEPEST_LEVEL = 128
export const MOST_NODES = 600_000

/** Builds the body of a page from its tags as browsers do, in linear time and with bounded depth. */
export class TreeBuilder {
  readonly body = new HtmlElement('body', new Map())
  private readonly open: HtmlElement[] = [this.body]
  private readonly openByName = new Map<string, number>()
  /** Of elements that were left out because they lay too deep. */
  private readonly leftOutByName = new Map<string, number>()
  private nodes = 0

  /** @throws EngineFault too_large */
  openElement(name: string, attributes: ReadonlyMap<string, string>): void {
    this.endImplied(name)
    const isVoid = VOID_TAGS.has(name)
    if (this.open.length >= DEEPEST_LEVEL && !isVoid) {
      count(this.leftOutByName, name, 1)
      // Its text stays apart from what stands before it.
      if (BLOCK_TAGS.has(name)) this.place(new HtmlElement('br', NO_ATTRIBUTES))
      return
    }
    const element = new HtmlElement(name, attributes)
    this.place(element)
    if (BLOCK_TAGS.has(name)) this.tellAncestors()
    if (isVoid) return
    this.open.push(element)
    count(this.openByName, name, 1)
  }

  closeElement(name: string): void {
    if ((this.leftOutByName.get(name) ?? 0) > 0) {
      count(this.leftOutByName, name, -1)
      return
    }
    if (name === 'br' || (name === 'p' && !this.isOpen('p'))) this.openElement(name, NO_ATTRIBUTES)
    if (!this.isOpen(name)) return
    const level = this.levelOf(name)
    if (level === undefined) return
    if (FORMATTING_TAGS.has(name) && this.holdsOpenBlock(level)) this.takeOut(level)
    else if (BLOCK_TAGS.has(name) || !this.holdsOpenBlock(level)) this.closeDownTo(level)
  }

  /** @throws EngineFault too_large */
  addText(data: string): void {
    if (data !== '') this.place(new HtmlText(data))
  }

  private place(node: HtmlElement | HtmlText): void {
    this.nodes += 1
    if (this.nodes > MOST_NODES) throw new EngineFault('too_large', 'The page has too many elements.')
    this.top.append(node)
  }

  private get top(): HtmlElement {
    return this.open.at(-1) ?? this.body
  }

  private isOpen(name: string): boolean {
    return (this.openByName.get(name) ?? 0) > 0
  }

  private endImplied(name: string): void {
    for (const { ended, within } of IMPLIED_ENDS.get(name) ?? []) {
      if (![...ended].some((tag) => this.isOpen(tag))) continue
      for (let level = this.open.length - 1; level > 0; level -= 1) {
        const tag = this.open[level]?.localName ?? ''
        if (ended.has(tag)) {
          this.closeDownTo(level)
          break
        }
        if (within.has(tag)) break
      }
    }
  }

  /** Of the innermost open element of that name that an end tag may reach. */
  private levelOf(name: string): number | undefined {
    for (let level = this.open.length - 1; level > 0; level -= 1) {
      const tag = this.open[level]?.localName ?? ''
      if (tag === name) return level
      if (SCOPE_TAGS.has(tag) && !TABLE_PARTS.has(name)) return undefined
    }
    return undefined
  }

  private holdsOpenBlock(level: number): boolean {
    for (let inner = level + 1; inner < this.open.length; inner += 1) {
      if (BLOCK_TAGS.has(this.open[inner]?.localName ?? '')) return true
    }
    return false
  }

  private closeDownTo(level: number): void {
    while (this.open.length > level) count(this.openByName, this.open.pop()?.localName ?? '', -1)
  }

  private takeOut(level: number): void {
    for (const element of this.open.splice(level, 1)) count(this.openByName, element.localName, -1)
  }

  private tellAncestors(): void {
    for (let level = this.open.length - 1; level >= 0; level -= 1) {
      const element = this.open[level]
      if (element === undefined || element.holdsBlocks) return
      element.holdsBlocks = true
    }
  }
}

const NO_ATTRIBUTES: ReadonlyMap<string, string> = new Map()
const TABLE_PARTS: ReadonlySet<string> = new Set(['table', 'tbody', 'thead', 'tfoot', 'tr', 'td', 'th', 'caption'])

function count(counts: Map<string, number>, name: string, by: number): void {
  counts.set(name, (counts.get(name) ?? 0) + by)
}
