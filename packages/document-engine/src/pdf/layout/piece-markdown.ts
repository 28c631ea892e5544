import { escapeInline, type Surroundings } from '../../markdown/escape-markdown.js'
import { firstCharacter, lastCharacter } from './characters.js'
import type { Span } from './layout-model.js'

/** Text of one look. */
export interface Piece {
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

/** The piece with its marks; its neighbours decide what must be escaped. */
export function pieceMarkdown(piece: Piece, before: Piece | undefined, after: Piece | undefined): string {
  const text = piece.text.replace(SOFT_HYPHENS, '')
  const inner = text.trim()
  if (inner === '') return text
  const lead = /^\s*/.exec(text)?.[0] ?? ''
  const trail = text.slice(text.trimEnd().length)
  const surroundings = {
    before: lead === '' ? lastCharacter(before?.text ?? ' ') : ' ',
    after: trail === '' ? firstCharacter(after?.text ?? ' ') : ' ',
    isLinkText: piece.url !== '',
  }
  return lead + linked(scripted(marked(inner, piece, surroundings), piece), inner, piece.url) + trail
}

function marked(text: string, piece: Piece, surroundings: Surroundings): string {
  if (piece.isCode) return codeSpan(text)
  const escaped = escapeInline(text, surroundings)
  if (!isMarkable(text, surroundings)) return escaped
  const mark = (piece.isBold ? '**' : '') + (piece.isItalic ? '*' : '')
  return mark + escaped + mark
}

/** CommonMark: marks next to punctuation inside and to a letter outside do not count as marks. */
function isMarkable(text: string, { before, after }: Surroundings): boolean {
  const opens = !PUNCTUATION_PATTERN.test(firstCharacter(text)) || !WORD_PATTERN.test(before)
  return opens && (!PUNCTUATION_PATTERN.test(lastCharacter(text)) || !WORD_PATTERN.test(after))
}

function codeSpan(text: string): string {
  const fence = fenceFor(text, 1)
  const pad = text.startsWith('`') || text.endsWith('`') ? ' ' : ''
  return fence + pad + text + pad + fence
}

function scripted(markdown: string, piece: Piece): string {
  if (piece.script === 'base') return markdown
  return piece.script === 'sub' ? `<sub>${markdown}</sub>` : `<sup>${markdown}</sup>`
}

function linked(markdown: string, text: string, url: string): string {
  if (url === '') return markdown
  const isOwnAddress = text === url || `http://${text}` === url || `https://${text}` === url || `mailto:${text}` === url
  if (text === url && !/[\s<>]/.test(url)) return `<${url}>`
  return `[${isOwnAddress ? text : markdown}](${escapedUrl(url)})`
}

function escapedUrl(url: string): string {
  return url.replace(/[\s<>()\\]/g, (character) =>
    encodeURIComponent(character).replace('(', '%28').replace(')', '%29'),
  )
}

/** Backticks, more than stand together anywhere in the text and at least `least`. */
export function fenceFor(text: string, least: number): string {
  const longest = (text.match(/`+/g) ?? []).reduce((most, ticks) => Math.max(most, ticks.length), 0)
  return '`'.repeat(Math.max(least, longest + 1))
}
