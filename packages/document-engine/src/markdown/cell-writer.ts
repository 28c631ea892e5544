import { type Block, BOLD, type Inline, type ListBlock } from './document-model.js'
import { codeSpan, writeInline } from './inline-writer.js'
import { withMark } from './tidy-inline.js'

const LINE_BREAK = '<br>'

/** Blocks where Markdown has room for one line only: the lines they would have, with `<br>` between them. */
export function writeOnOneLine(blocks: readonly Block[]): string {
  const lines: string[] = []
  addLines(blocks, lines)
  return lines.join(LINE_BREAK)
}

function addLines(blocks: readonly Block[], lines: string[]): void {
  for (const block of blocks) addBlock(block, lines)
}

function addBlock(block: Block, lines: string[]): void {
  switch (block.kind) {
    case 'paragraph':
      lines.push(writeLine(block.content))
      return
    case 'heading':
      lines.push(writeLine(withMark(block.content, BOLD)))
      return
    case 'code':
      for (const text of block.text.split('\n')) if (text.trim() !== '') lines.push(cellCode(text.trimEnd()))
      return
    case 'math':
      lines.push(cellTex(`$$${block.tex}$$`))
      return
    case 'quote':
      addLines(block.blocks, lines)
      return
    case 'list':
      addItems(block, lines)
      return
    case 'table':
      if (block.caption.length > 0) lines.push(writeLine(block.caption))
      // Tables do not nest: a row becomes a line. Spans are not laid out, so that nothing multiplies.
      for (const row of block.rows)
        lines.push(
          row.cells
            .map((cell) => writeOnOneLine(cell.blocks))
            .join(' ')
            .trim(),
        )
      return
    case 'rule':
      return
  }
}

function addItems(list: ListBlock, lines: string[]): void {
  for (const [index, item] of list.items.entries()) {
    const marker = list.isOrdered ? `${String(list.start + index)}. ` : '- '
    const own: string[] = []
    addLines(item.blocks, own)
    const [first = '', ...rest] = own
    const box = item.task === 'none' ? '' : item.task === 'done' ? '[x] ' : '[ ] '
    lines.push(`${marker}${box}${first}`)
    for (const text of rest) lines.push(text)
  }
}

function writeLine(pieces: readonly Inline[]): string {
  return writeInline(cellPieces(pieces), LINE_BREAK)
}

function cellPieces(pieces: readonly Inline[]): readonly Inline[] {
  return pieces.map((piece) => {
    if (piece.kind === 'link') return { ...piece, content: cellPieces(piece.content) }
    if (piece.kind === 'raw') return { ...piece, text: cellTex(piece.text) }
    if (piece.kind !== 'code' || !isAmbiguous(piece.text)) return piece
    return { kind: 'raw', text: cellCode(piece.text), marks: piece.marks }
  })
}

// Readers do not agree whether a pipe behind a backslash can be escaped within a code span.
function isAmbiguous(code: string): boolean {
  return code.includes('\\|')
}

function cellCode(text: string): string {
  if (!isAmbiguous(text)) return codeSpan(text)
  const entities = text.replace(/[!-/:-@[-`{-~]/g, (character) => `&#${String(character.charCodeAt(0))};`)
  return `<code>${entities}</code>`
}

/** The names that TeX has for its bars. */
function cellTex(text: string): string {
  return text.replaceAll('\\|', '\\Vert ').replaceAll('|', '\\vert ')
}
