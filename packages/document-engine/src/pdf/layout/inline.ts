import {
  type CodePlace,
  collapseSpaces,
  destination,
  escapeInline,
  escapeLineStart,
  firstCharacter,
  inlineCode,
  lastCharacter,
  type Surroundings,
  urlReaches,
} from '../../markdown/escape-markdown.js'
import type { DocumentStyle } from './document-style.js'
import type { Line, Span } from './layout-model.js'
import { seamOf, withoutLeaders } from './line-text.js'

/** Text of one style. */
interface Piece {
  text: string
  readonly isBold: boolean
  readonly isItalic: boolean
  readonly isCode: boolean
  readonly script: Span['script']
  readonly url: string
}

const SOFT_HYPHENS = /\u00ad/g
const PUNCTUATION_PATTERN = /[\p{P}\p{S}]/u
const WORD_PATTERN = /[\p{L}\p{N}]/u

/** Markdown of the pieces; escapes depend on adjacent pieces. */
function piecesMarkdown(pieces: readonly Piece[], isInCell: boolean): string {
  let isAfterUrl = false
  const visible = pieces
    .map((piece) => ({ ...piece, text: piece.text.replace(SOFT_HYPHENS, '') }))
    .filter(({ text }) => text !== '')
  const written = visible.map((piece, index) => {
    const place = { isAfterUrl, isInCell }
    const markdown = pieceMarkdown(piece, visible[index - 1], visible[index + 1], place)
    isAfterUrl = urlReaches(markdown, isAfterUrl)
    return markdown
  })
  return written.join('')
}

function pieceMarkdown(
  piece: Piece,
  before: Piece | undefined,
  after: Piece | undefined,
  { isAfterUrl, isInCell }: { readonly isAfterUrl: boolean; readonly isInCell: boolean },
): string {
  const { text } = piece
  const inner = text.trim()
  if (inner === '') return text
  const lead = /^\s*/.exec(text)?.[0] ?? ''
  const trail = text.slice(text.trimEnd().length)
  const surroundings = {
    before: lead === '' ? lastCharacter(before?.text ?? ' ') : ' ',
    after: trail === '' ? firstCharacter(after?.text ?? ' ') : ' ',
    isLinkText: piece.url !== '',
    isAfterUrl: isAfterUrl && lead === '',
    isInCell,
  }
  return lead + linked(scripted(marked(inner, piece, surroundings), piece), inner, piece.url) + trail
}

function marked(text: string, piece: Piece, surroundings: Surroundings & CodePlace): string {
  if (piece.isCode) return inlineCode(text, surroundings)
  const escaped = escapeInline(text, surroundings)
  if (!isMarkable(text, surroundings)) return escaped
  const mark = (piece.isBold ? '**' : '') + (piece.isItalic ? '*' : '')
  return mark + escaped + mark
}

/** CommonMark accepts no delimiter between punctuation inside and a letter outside. */
function isMarkable(text: string, { before, after }: Surroundings): boolean {
  const opens = !PUNCTUATION_PATTERN.test(firstCharacter(text)) || !WORD_PATTERN.test(before)
  return opens && (!PUNCTUATION_PATTERN.test(lastCharacter(text)) || !WORD_PATTERN.test(after))
}

function scripted(markdown: string, piece: Piece): string {
  if (piece.script === 'base') return markdown
  return piece.script === 'sub' ? `<sub>${markdown}</sub>` : `<sup>${markdown}</sup>`
}

function linked(markdown: string, text: string, url: string): string {
  if (url === '') return markdown
  const isOwnAddress = text === url || `http://${text}` === url || `https://${text}` === url || `mailto:${text}` === url
  if (text === url && url === destination(url)) return `<${url}>`
  return `[${isOwnAddress && !/[<>[\]`\\&!]/.test(text) ? text : markdown}](${destination(url)})`
}

interface InlineOptions {
  /** For headings and table headers, which are bold anyway. */
  readonly isPlain: boolean
  /** At the start of a line, where `1.` or `-` would begin a list. */
  readonly isLineStart: boolean
  readonly isInCell?: boolean
}

/** Lines joined to one text with links, emphasis and code. A link whose text is its address becomes an autolink. */
export function inlineMarkdown(lines: readonly Line[], style: DocumentStyle, options: InlineOptions): string {
  const pieces = piecesOfLines(lines, style)
  const isUniform = (test: (piece: Piece) => boolean): boolean => pieces.every((piece) => test(piece))
  const neutral = {
    isBold: options.isPlain || isUniform((piece) => piece.isBold || isUnmarkable(piece.text)),
    isItalic: options.isPlain || isUniform((piece) => piece.isItalic || isUnmarkable(piece.text)),
  }
  const merged = mergeAlike(pieces, neutral)
  const text = withoutLeaders(collapseSpaces(piecesMarkdown(merged, options.isInCell === true)).trim())
  return options.isLineStart ? escapeLineStart(text) : text
}

function isUnmarkable(text: string): boolean {
  return !/[\p{L}\p{N}]/u.test(text)
}

function piecesOfLines(lines: readonly Line[], style: DocumentStyle): Piece[] {
  const pieces: Piece[] = []
  for (const line of lines) {
    for (const [index, span] of line.spans.entries()) {
      const last = pieces.at(-1)
      let blank = span.hasBlankBefore ? ' ' : ''
      if (index === 0 && last !== undefined) {
        const seam = seamOf(tailOf(pieces), line.text, style.words)
        last.text = last.text.slice(0, last.text.length - seam.cut)
        blank = seam.blank
      }
      pieces.push(...withBlank(blank, pieceOf(span, style)))
    }
  }
  return pieces
}

/** End of the text, long enough for a hyphenated word. */
function tailOf(pieces: readonly Piece[]): string {
  let tail = ''
  for (let index = pieces.length - 1; index >= 0 && tail.length < 60; index -= 1)
    tail = (pieces[index]?.text ?? '') + tail
  return tail
}

function withBlank(blank: string, piece: Piece): Piece[] {
  if (blank === '') return [piece]
  return [{ text: blank, isBold: false, isItalic: false, isCode: false, script: 'base', url: '' }, piece]
}

function pieceOf(span: Span, style: DocumentStyle): Piece {
  const isCode = isCodeSpan(span) && !style.isBodyFixedPitch
  return {
    text: span.text,
    // Code is not marked, and two adjacent spans of code would be read as one, with backticks in it.
    isBold: span.isBold && !style.isBodyBold && !isCode,
    isItalic: span.isItalic && !style.isBodyItalic && !isCode,
    isCode,
    script: span.script,
    url: span.url,
  }
}

/** Whether a span is code: fixed pitch with ASCII characters, since symbol fonts have a fixed pitch as well. */
function isCodeSpan(span: Span): boolean {
  return span.isFixedPitch && span.script === 'base' && /[\x21-\x7e]/.test(span.text)
}

/** Joins adjacent pieces of one style; blanks and punctuation take the style of both sides if these are equal. */
function mergeAlike(pieces: readonly Piece[], neutral: { isBold: boolean; isItalic: boolean }): Piece[] {
  const merged: Piece[] = []
  for (const [index, piece] of pieces.entries()) {
    const look = {
      ...piece,
      isBold: piece.isBold && !neutral.isBold && !isUnmarkable(piece.text),
      isItalic: piece.isItalic && !neutral.isItalic && !isUnmarkable(piece.text),
    }
    const last = merged.at(-1)
    const next = pieces[index + 1]
    const isBetween =
      last !== undefined && next !== undefined && isUnmarkable(piece.text) && isAlike(last, next, neutral)
    if (last !== undefined && (isBetween || isAlike(last, look, neutral))) last.text += piece.text
    else merged.push(look)
  }
  return merged
}

function isAlike(a: Piece, b: Piece, neutral: { isBold: boolean; isItalic: boolean }): boolean {
  return (
    a.isBold === (b.isBold && !neutral.isBold) &&
    a.isItalic === (b.isItalic && !neutral.isItalic) &&
    a.isCode === b.isCode &&
    a.script === b.script &&
    a.url === b.url
  )
}
