// Of a line: everything CommonMark or Unicode calls white space, with the spaces that must not break.
const BLANK_RUN = /[\s\u0085\u00a0\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/g
// Control characters, soft hyphen, zero-width space, word joiner, byte order mark. Joiners and direction marks stay:
// scripts need them.
const INVISIBLE = /(?![\t-\r\u0085])[\p{Cc}\u00ad\u200b\u2060\ufeff]/gu
const UNTIDY = /[^\S ]| {2}|[\p{Cc}\u00ad\u200b\u2060]/u

/** One blank for each run of white space, no invisible characters. */
export function collapseBlanks(text: string): string {
  if (!UNTIDY.test(text)) return text
  const visible = text.replace(INVISIBLE, '')
  return visible.replace(BLANK_RUN, (run, offset: number) =>
    run.includes('\n') && isWide(visible, offset - 1) && isWide(visible, offset + run.length) ? '' : ' ',
  )
}

/** The text of code: lines end with `\n`, blanks are ASCII, nothing is collapsed. */
export function plainLines(text: string): string {
  return text
    .replace(/\r\n?|[\u0085\u2028\u2029]/g, '\n')
    .replace(INVISIBLE, '')
    .replace(/[\u00a0\u2000-\u200a\u202f\u205f]/g, ' ')
}

// Between these a line break in the source is no blank on the page (CSS Text 3, segment break transformation).
function isWide(text: string, index: number): boolean {
  const code = text.charCodeAt(index)
  return (code >= 0x2e80 && code <= 0x9fff) || (code >= 0xf900 && code <= 0xfaff) || (code >= 0xff01 && code <= 0xff60)
}

export function isBlank(character: string): boolean {
  return /^\s?$/.test(character)
}

/** As CommonMark 0.31 has it: categories P and S. */
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
  const last = text.charCodeAt(end - 1)
  return last >= 0xdc00 && last <= 0xdfff ? text.slice(Math.max(0, end - 2), end) : text.charAt(end - 1)
}

export function firstCharacter(text: string): string {
  const code = text.codePointAt(0)
  return code === undefined ? '' : String.fromCodePoint(code)
}
