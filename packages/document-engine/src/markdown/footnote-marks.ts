/** Unicode noncharacters that mark the number of a note until the Markdown is written; texts keep none of them. */
const OPEN = '\ufdd0'
const CLOSE = '\ufdd1'
const CLOSE_LABEL = '\ufdd2'
const MARKS = /[\ufdd0-\ufdd2]/g

/** Most notes of a document; further ones are left out. */
export const MARKED_NOTES = 100_000

/** A reference to a note, in HTML. */
export function noteReference(number: number | string): string {
  return `${OPEN}${number}${CLOSE}`
}

/** What stands in front of the text of a note, in HTML. */
export function noteLabel(number: number): string {
  return `${OPEN}${number}${CLOSE_LABEL} `
}

/** Removes marks that a document has of its own. */
export const withoutMarks = (text: string): string => text.replaceAll(MARKS, '')

/**
 * Replaces the marks by GFM footnotes. Where footnotes are not rendered, a reference before `(` or `:` would be a link or its
 * definition, and so would a note of a single word: a blank divides it if it has a scheme.
 */
export function restoreFootnotes(markdown: string): string {
  return markdown
    .replaceAll(
      /\ufdd0(\d*)\ufdd1(?=([(:[]?))/g,
      (_mark, number: string, next: string) => `[^${number}]${next && '\\'}`,
    )
    .replaceAll(
      /\ufdd0(\d+)\ufdd2 (?:(?!https?:\/\/)([a-z][a-z\d+.-]*:)(?=\S))?/gi,
      (_mark, number: string, scheme = '') => (scheme === '' ? `[^${number}]: ` : `[^${number}]: ${scheme} `),
    )
}
