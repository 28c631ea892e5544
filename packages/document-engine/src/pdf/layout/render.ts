import { codeMarkdown } from './code-markdown.js'
import type { DocumentStyle } from './document-style.js'
import { inlineMarkdown } from './inline.js'
import type { Block, TextBlock } from './layout-model.js'
import { ListNesting } from './list-markdown.js'
import type { PageRemark } from './pdf-page.js'
import { tableMarkdown } from './table-markdown.js'

/**
 * Markdown of the blocks, with a line `<!-- page N -->` in front of the first one that begins on page N, and the remarks
 * on pages up to there before it. Without blocks there is nothing to remark on.
 */
export function renderBlocks(
  blocks: readonly Block[],
  remarks: readonly PageRemark[],
  headings: ReadonlyMap<TextBlock, number>,
  style: DocumentStyle,
): string {
  const renderer = new Renderer([...remarks], headings, style)
  for (const block of blocks) renderer.add(block)
  return renderer.finish()
}

class Renderer {
  private readonly parts: string[] = []
  private readonly lists = new ListNesting()
  private page = 1
  private isAfterItem = false

  constructor(
    private readonly remarks: PageRemark[],
    private readonly headings: ReadonlyMap<TextBlock, number>,
    private readonly style: DocumentStyle,
  ) {}

  add(block: Block): void {
    this.pushRemarks(block.page)
    if (block.page > this.page) {
      this.page = block.page
      this.push(`<!-- page ${String(block.page)} -->`)
    }
    if (block.kind === 'text') this.addText(block)
    else {
      const leading = this.style.leadingOf(block.kind === 'code' ? (block.lines[0]?.size ?? 10) : 10)
      this.push(block.kind === 'code' ? codeMarkdown(block, leading) : tableMarkdown(block.table, this.style))
      this.lists.end()
    }
  }

  finish(): string {
    if (this.parts.length === 0) return ''
    this.pushRemarks(Infinity)
    return `${this.parts.join('')}\n`
  }

  private pushRemarks(untilPage: number): void {
    for (let next = this.remarks[0]; next !== undefined && next.page <= untilPage; next = this.remarks[0]) {
      this.remarks.shift()
      this.push(`<!-- ${next.text} -->`)
    }
  }

  private addText(block: TextBlock): void {
    const level = this.headings.get(block)
    const text = inlineMarkdown(block.lines, this.style, {
      isPlain: level !== undefined,
      isLineStart: level === undefined,
    })
    if (text === '') return
    if (block.marker !== undefined) {
      this.pushItem(`${this.lists.enter(block)}${block.marker.label} ${text}`)
      return
    }
    const inset = level === undefined && this.lists.isOpen ? this.lists.insetOf(block) : undefined
    if (inset === undefined) this.lists.end()
    this.push(level === undefined ? (inset ?? '') + text : `${'#'.repeat(level)} ${text}`)
  }

  private push(markdown: string): void {
    this.parts.push(this.parts.length === 0 ? markdown : `\n\n${markdown}`)
    this.isAfterItem = false
  }

  private pushItem(markdown: string): void {
    const separator = this.isAfterItem ? '\n' : '\n\n'
    this.parts.push(this.parts.length === 0 ? markdown : separator + markdown)
    this.isAfterItem = true
  }
}
