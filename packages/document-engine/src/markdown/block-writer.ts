import { type Block, type Inline, type ListBlock, type ListItem, type TableBlock } from './document-model.js'
import { escapeDefinition, escapeLineStart, fenceFor } from './escape-markdown.js'
import { writeInline } from './inline-writer.js'
import { writeTable } from './table-writer.js'

/** Blocks as GitHub-flavoured Markdown that ends with one line feed; '' when there are none. */
export function writeBlocks(blocks: readonly Block[]): string {
  const writer = new BlockWriter()
  writer.addAll(withoutOuterRules(blocks))
  return writer.finish()
}

function withoutOuterRules(blocks: readonly Block[]): readonly Block[] {
  let start = 0
  let end = blocks.length
  while (blocks[start]?.kind === 'rule') start += 1
  while (end > start && blocks[end - 1]?.kind === 'rule') end -= 1
  return blocks.slice(start, end)
}

class BlockWriter {
  private readonly lines: string[] = []
  /** Prefix of every line: quote marks, and indents of the lists around. */
  private prefix = ''
  /** Prefix of the next line instead, at the start of a quote or an item. */
  private firstPrefix: string | undefined

  finish(): string {
    return this.lines.length === 0 ? '' : `${this.lines.join('\n')}\n`
  }

  addAll(blocks: readonly Block[]): void {
    let previous: Block | undefined
    for (const block of blocks) {
      if (block.kind === 'rule' && previous?.kind === 'rule') continue
      if (previous !== undefined) this.addLine('')
      this.add(block, previous)
      previous = block
    }
  }

  private add(block: Block, previous: Block | undefined): void {
    switch (block.kind) {
      case 'paragraph':
        this.addParagraph(block.content)
        return
      case 'heading':
        this.addHeading(block.level, block.content)
        return
      case 'code':
        this.addCode(block.language, block.text)
        return
      case 'math':
        // Where formulas are not rendered, TeX such as `~~~` would begin another block; `{}` is nothing in TeX.
        for (const line of ['$$', block.tex === escapeLineStart(block.tex) ? block.tex : `{}${block.tex}`, '$$'])
          this.addLine(line)
        return
      case 'quote':
        this.within('> ', '> ', () => {
          this.addAll(block.blocks)
        })
        return
      case 'list':
        this.addList(block, previous)
        return
      case 'table':
        this.addTable(block)
        return
      case 'rule':
        this.addLine('---')
        return
    }
  }

  private addLine(line: string): void {
    const prefix = this.firstPrefix ?? this.prefix
    this.firstPrefix = undefined
    this.lines.push(line === '' ? prefix.trimEnd() : prefix + line)
  }

  private within(first: string, rest: string, write: () => void): void {
    const outer = this.prefix
    this.firstPrefix = (this.firstPrefix ?? outer) + first
    this.prefix = outer + rest
    write()
    this.prefix = outer
  }

  private addParagraph(content: readonly Inline[], box = '', isItem = false): void {
    const [first = '', ...rest] = escapeDefinition(writeInline(content, '\\\n')).split('\n')
    const isLikeTask = isItem && /^\[[ x]\](?:\s|$)/i.test(first)
    this.addLine(box + (isLikeTask ? `\\${first}` : escapeLineStart(first)))
    for (const line of rest) this.addLine(escapeLineStart(line))
  }

  private addHeading(level: number, content: readonly Inline[]): void {
    // CommonMark reads number signs at the end of a heading as its closing sequence.
    this.addLine(`${'#'.repeat(level)} ${writeInline(content, ' ').replace(/(^|\s)(#+)$/, '$1\\$2')}`)
  }

  private addCode(language: string, text: string): void {
    const fence = fenceFor(text, 3)
    this.addLine(fence + language)
    for (const line of text.split('\n')) this.addLine(line)
    this.addLine(fence)
  }

  private addTable(table: TableBlock): void {
    if (table.caption.length > 0) this.addParagraph(table.caption)
    const rows = writeTable(table)
    const blocks = rows === undefined ? table.rows.flatMap(({ cells }) => cells.flatMap((cell) => cell.blocks)) : []
    if (table.caption.length > 0 && (rows !== undefined || blocks.length > 0)) this.addLine('')
    for (const row of rows ?? []) this.addLine(row)
    this.addAll(blocks)
  }

  private addList(list: ListBlock, previous: Block | undefined): void {
    // A different delimiter separates two adjacent lists.
    const delimiter = previous?.kind === 'list' && previous.isOrdered ? ')' : '.'
    const isTight = list.items.every(isTightItem)
    for (const [index, item] of list.items.entries()) {
      if (index > 0 && !isTight) this.addLine('')
      const marker = list.isOrdered ? `${String(Math.min(list.start + index, 999_999_999))}${delimiter} ` : '- '
      this.within(marker, ' '.repeat(marker.length), () => {
        this.addItem(item, isTight)
      })
    }
  }

  private addItem(item: ListItem, isTight: boolean): void {
    const [first, ...rest] = item.blocks
    const box = item.task === 'none' ? '' : item.task === 'done' ? '[x] ' : '[ ] '
    if (first?.kind === 'paragraph') this.addParagraph(first.content, box, true)
    else if (box !== '' || (first?.kind === 'rule' && rest.length === 0)) this.addLine(box.trimEnd())
    const others = first?.kind === 'paragraph' ? rest : item.blocks
    // `- ---` would be one rule, not an item with a rule.
    const blocks = others.length < item.blocks.length || others[0]?.kind !== 'rule' ? others : others.slice(1)
    if (blocks.length > 0 && !isTight && blocks.length < item.blocks.length) this.addLine('')
    this.addAll(blocks)
  }
}

/** Whether an item needs no blank lines: a line, or lists, or a line and lists below it. */
function isTightItem(item: ListItem): boolean {
  const [first, ...rest] = item.blocks
  const lists = first?.kind === 'paragraph' ? rest : item.blocks
  // Only a list that starts with 1 may follow a line without a blank line between them.
  return lists.length < 2 && lists.every((block) => block.kind === 'list' && (!block.isOrdered || block.start === 1))
}
