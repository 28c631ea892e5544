// Of texts without a bound no `+` behind a set of characters: in a process that holds much code of regular expressions already,
// V8 compiles without optimization (`--no-regexp-optimization`) and keeps an entry for each, a RangeError at ten million.
const SPACE_RUN = /\s\s*/g
const BLANK = /[\s\u0085\u00a0\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/.source
/** White space of CommonMark and Unicode, with non-breaking spaces. */
const BLANK_RUN = new RegExp(`${BLANK}${BLANK}*`, 'g')
const TICKS = /``*/g
// Control characters, soft hyphen, zero-width space, word joiner, byte order mark. Joiners and direction marks stay:
// some writing systems need them.
const INVISIBLE = /(?![\t-\r\u0085])[\p{Cc}\u00ad\u200b\u2060\ufeff]/gu
const UNTIDY = /[^\S ]| {2}|[\p{Cc}\u00ad\u200b\u2060]/u

/** Replaces each run of white space by one blank. */
export const collapseSpaces = (text: string): string => text.replace(SPACE_RUN, ' ')

/** The same, and removes invisible characters. */
export function collapseBlanks(text: string): string {
  if (!UNTIDY.test(text)) return text
  const visible = text.replace(INVISIBLE, '')
  return visible.replace(BLANK_RUN, (run, offset: number) =>
    run.includes('\n') && isWide(visible, offset - 1) && isWide(visible, offset + run.length) ? '' : ' ',
  )
}

/** Text of code: line ends become `\n` and blanks ASCII; nothing is collapsed. */
export function plainLines(text: string): string {
  return text
    .replace(/\r\n?|[\u0085\u2028\u2029]/g, '\n')
    .replace(INVISIBLE, '')
    .replace(/[\u00a0\u2000-\u200a\u202f\u205f]/g, ' ')
}

// CJK characters: a line break between two of them is no blank (CSS Text 3, segment break transformation).
function isWide(text: string, index: number): boolean {
  const code = text.charCodeAt(index)
  return (code >= 0x2e80 && code <= 0x9fff) || (code >= 0xf900 && code <= 0xfaff) || (code >= 0xff01 && code <= 0xff60)
}

export function isBlank(character: string): boolean {
  return /^\s?$/.test(character)
}

/** CommonMark 0.31: Unicode categories P and S. */
export function isPunctuation(character: string): boolean {
  return /^[\p{P}\p{S}]$/u.test(character)
}

export function isWordCharacter(character: string): boolean {
  return !isBlank(character) && !isPunctuation(character)
}

/** Length in code units of the blanks and punctuation a text begins with. */
export function leadingPunctuation(text: string): number {
  return /^[\p{P}\p{S}\s]*/u.exec(text)?.[0].length ?? 0
}

/** Length in code units of the blanks and punctuation a text ends with. */
export function trailingPunctuation(text: string): number {
  let start = text.length
  while (start > 0) {
    const character = lastCharacter(text, start)
    if (isWordCharacter(character)) break
    start -= character.length
  }
  return text.length - start
}

/** The character that ends before `end`; '' at the start. */
export function lastCharacter(text: string, end = text.length): string {
  const pair = text.slice(Math.max(0, end - 2), end)
  return /^[\ud800-\udbff][\udc00-\udfff]$/.test(pair) ? pair : pair.slice(-1)
}

export function firstCharacter(text: string): string {
  const code = text.codePointAt(0)
  return code === undefined ? '' : String.fromCodePoint(code)
}

/** Context of a text within its line: the characters beside it, a blank at the ends of a block. */
export interface Surroundings {
  readonly before: string
  readonly after: string
  /** Within `[…]`, where brackets must be escaped and bare URLs are no links, if parsers agree on where the link ends. */
  readonly isLinkText: boolean
  /** A bare URL reaches up to the text: `urlReaches` of what stands before it. */
  readonly isAfterUrl?: boolean
}

/** Surroundings of a text that is a line of its own. */
export const LINE_ENDS: Surroundings = { before: ' ', after: ' ', isLinkText: false }

/** Between lines of a cell. */
export const LINE_BREAK = '<br>'

const URL_START = /(?:https?|ftp):\/\/|www\./i

/**
 * Whether a bare URL goes on to the end of a text: one that begins in it, or one that reaches its start. Parsers take
 * everything up to a blank as part of the URL, some of them `<` within brackets as well, so that backslashes and backticks in it
 * do not escape what follows.
 */
export function urlReaches(text: string, reachesStart: boolean): boolean {
  let start = text.length
  while (start > 0 && /\S/.test(text.charAt(start - 1))) start -= 1
  return (reachesStart && start === 0) || URL_START.test(text.slice(start))
}

/** Lines as one, in a place where Markdown has no lines; a blank ends a bare URL before a break. */
export function joinLines(lines: readonly string[]): string {
  const last = lines.length - 1
  return lines.map((line, index) => (index < last && urlReaches(line, false) ? `${line} ` : line)).join(LINE_BREAK)
}

/**
 * Escapes plain text for GitHub-flavoured Markdown: one block of one or more lines, none of which may start a list, heading,
 * quote, table or rule. A `|` within a table cell is left to the caller.
 */
export function escapeMarkdown(text: string): string {
  return text
    .split('\n')
    .map((line) => escapeLineStart(escapeInline(line, LINE_ENDS)))
    .join('\n')
}

// Bare URLs are not escaped: GFM makes them links, backslashes included. Punctuation at the end is not part of them, and brackets
// never: other Markdown has no bare URLs, but would have a link there.
const SPECIALS = /(?:https?:\/\/|www\.)[!-;=-Z^_a-~]*[A-Za-z\d/=&#%+-]|`|\*+|_+|~+|\\|\]\(|[[\]]|<|&/g
const LINK_TEXT_SPECIALS = /`|\*+|_+|~+|\\|\]\(|[[\]]|<|&/g

/** Escapes inline markup; text such as `3 * 4`, `snake_case` and `a < b` needs no escape. */
export function escapeInline(text: string, surroundings: Surroundings): string {
  const { isAfterUrl = false, isLinkText } = surroundings
  const open = isLinkText || !text.includes('[') ? undefined : openBrackets(text, surroundings.after)
  let isInUrl = isAfterUrl
  let urlChecked = 0
  return text.replace(isLinkText ? LINK_TEXT_SPECIALS : SPECIALS, (special, offset: number) => {
    const end = offset + special.length
    const before = offset > 0 ? lastCharacter(text, offset) : surroundings.before
    const after = end < text.length ? firstCharacter(text.slice(end, end + 2)) : surroundings.after
    switch (special.charAt(0)) {
      case '`':
        return '\\`'
      case '*':
        return isBlank(before) && isBlank(after) ? special : escapeEach(special)
      case '_':
        return isNoUnderline(before, after) ? special : escapeEach(special)
      case '~':
        return isNoStrike(special, before, after) ? special : escapeEach(special)
      case '\\':
        return end === text.length || /[\n!-/:-@[-`{-~]/.test(after) ? '\\\\' : special
      case '[':
        return open?.has(offset) === false ? special : '\\['
      case ']':
        // A parser that looks for `](` alone would see a link.
        if (special === '](') return '\\]\\('
        return isLinkText || after === '(' ? '\\]' : special
      case '<':
        isInUrl = urlReaches(text.slice(urlChecked, offset), isInUrl)
        urlChecked = end
        return !/[a-z/!?]/i.test(after) ? special : isInUrl ? '&lt;' : '\\<'
      case '&':
        return isEntity(text, end) ? '\\&' : special
      default:
        return special
    }
  })
}

// Brackets belong to the host of an IPv6 address only.
const IPV6_HOST = /^[a-z][a-z\d+.-]{0,30}:\/\/(?:[^/?#[\]]*@)?\[[\da-f:.]*\]/i

/**
 * A URL as the destination of a link, within parentheses. What ends a destination, begins a title, a tag or another link is
 * percent-encoded, because URLs such as `mailto:` may hold blanks and quotes; a backslash escapes, and entities are read there as
 * well.
 */
export function destination(url: string): string {
  const host = IPV6_HOST.exec(url)?.[0] ?? ''
  const rest = url
    .slice(host.length)
    .replace(/[\s\p{Cc}<>"[\]\\|`]/gu, encodeURIComponent)
    .replace(/&(?=#?\w{1,32};)/g, '&amp;')
  return host + (isBalanced(rest) ? rest : rest.replaceAll('(', '%28').replaceAll(')', '%29'))
}

function isBalanced(text: string): boolean {
  let depth = 0
  for (const [parenthesis] of text.matchAll(/[()]/g)) {
    depth += parenthesis === '(' ? 1 : -1
    // CommonMark requires support for three levels; parsers differ beyond that.
    if (depth < 0 || depth > 3) return false
  }
  return depth === 0
}

/** Where the brackets are that no unescaped bracket closes: such a one would open a link that ends further on, even in code. */
function openBrackets(text: string, after: string): ReadonlySet<number> {
  const open = new Set<number>()
  const inner: number[] = []
  for (const { 0: bracket, index } of text.matchAll(/\]\(|[[\]]/g)) {
    if (bracket === '[') inner.push(index)
    else {
      const opening = inner.pop()
      const isEscaped = bracket === '](' || (after === '(' && index === text.length - 1)
      if (isEscaped && opening !== undefined) open.add(opening)
    }
  }
  for (const opening of inner) open.add(opening)
  return open
}

export interface CodePlace {
  /** `Surroundings.isAfterUrl`: a backtick is part of the URL and opens no code span. */
  readonly isAfterUrl?: boolean
  readonly isLinkText?: boolean
  readonly isInCell?: boolean
}

/** Code within a line: a code span, or an element where not every parser reads the span as one. */
export function inlineCode(text: string, place: CodePlace): string {
  const isAmbiguous =
    // Parsers differ on which backticks are part of the URL.
    place.isAfterUrl === true ||
    // marked takes a backtick in code for its end: it finds the end of a link in code, or beyond it. The bracket that opens
    // the link may stand in a formula, where none can be escaped.
    (text.includes('`') && (place.isLinkText === true || text.includes(']('))) ||
    // Parsers differ on an escaped pipe behind a backslash.
    (place.isInCell === true && text.includes('\\|'))
  return isAmbiguous ? codeElement(text) : codeSpan(text)
}

/** Fenced by a run of backticks that the text does not contain. */
function codeSpan(text: string): string {
  const runs = new Set(text.match(TICKS) ?? [])
  let fence = '`'
  while (runs.has(fence)) fence += '`'
  const padding = firstCharacter(text) === '`' || lastCharacter(text) === '`' ? ' ' : ''
  return `${fence}${padding}${text}${padding}${fence}`
}

/** All punctuation as character references. */
function codeElement(text: string): string {
  const entities = text.replace(/[!-/:-@[-`{-~]/g, (character) => `&#${String(character.charCodeAt(0))};`)
  return `<code>${entities}</code>`
}

/** A run of backticks longer than any in the text, and at least `least` long. */
export function fenceFor(text: string, least: number): string {
  const longest = (text.match(TICKS) ?? []).reduce((most, ticks) => Math.max(most, ticks.length), 0)
  return '`'.repeat(Math.max(least, longest + 1))
}

function escapeEach(run: string): string {
  return `\\${run.split('').join('\\')}`
}

function isNoUnderline(before: string, after: string): boolean {
  return (isWordCharacter(before) && isWordCharacter(after)) || (isBlank(before) && isBlank(after))
}

// GitHub also strikes through with single tildes, but only if the second one can close the pair.
function isNoStrike(run: string, before: string, after: string): boolean {
  if (isBlank(before) && isBlank(after)) return true
  if (run.length > 1 || before === '~' || after === '~') return false
  return isBlank(before) || (isPunctuation(before) && !isBlank(after) && !isPunctuation(after))
}

function isEntity(text: string, offset: number): boolean {
  return /^#?\w{1,32};/.test(text.slice(offset, offset + 40))
}

const LINE_STARTS: readonly RegExp[] = [
  /^#{1,6}(?=\s|$)/,
  /^>/,
  /^[-+*](?=\s|$)/,
  /^(?=[:| ]*-)[-:| ]+$/,
  /^=+\s*$/,
  /^_[_ ]*$/,
  /^~~~/,
]
const ORDERED_MARKER = /^(\d{1,9})([.)])(?=\s|$)/

/** Escapes the start of a line of finished inline Markdown that would begin another block. */
export function escapeLineStart(line: string): string {
  if (LINE_STARTS.some((start) => start.test(line))) return `\\${line}`
  return escapeDefinition(line).replace(ORDERED_MARKER, '$1\\$2')
}

/**
 * Escapes the start of a paragraph of finished inline Markdown that would define the address of a link: a label of one or more
 * lines, in brackets, before a colon. Its closing bracket is escaped, because the opening one may be that of a link.
 */
export function escapeDefinition(paragraph: string): string {
  if (!paragraph.startsWith('[')) return paragraph
  const parts: string[] = []
  let begin = 0
  for (let end = paragraph.indexOf(']'); end >= 0; end = paragraph.indexOf(']', end + 1)) {
    const slashes = trailingBackslashes(paragraph, end)
    if (slashes % 2 === 1) continue
    if (paragraph.charAt(end + 1) !== ':') break
    parts.push(paragraph.slice(begin, end), '\\')
    begin = end
  }
  return parts.join('') + paragraph.slice(begin)
}

function trailingBackslashes(text: string, end: number): number {
  let start = end
  while (text.charAt(start - 1) === '\\') start -= 1
  return end - start
}
