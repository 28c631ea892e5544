import { readFileSync } from 'node:fs'

const TEXT = readFileSync(new URL('../../docs/spec.md', import.meta.url), 'utf8')

/** One row of a table: column heading → cell. */
export type Row = Readonly<Record<string, string>>

const cellsOf = (line: string): string[] =>
  line
    .slice(1, -1)
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim())

/** The text under a heading, up to the next heading of any level. Throws when there is none. */
export function sectionOf(heading: string): string {
  const lines = TEXT.split('\n')
  const start = lines.findIndex((line) => /^#+ /.test(line) && line.replace(/^#+ /, '').startsWith(heading))
  if (start === -1) throw new Error(`the specification has no heading "${heading}"`)
  const length = lines.slice(start + 1).findIndex((line) => line.startsWith('#'))
  return lines.slice(start + 1, length === -1 ? undefined : start + 1 + length).join('\n')
}

/** The rows of the section's table whose first column has this heading. Throws when there is none. */
export function tableOf(heading: string, firstColumn: string): readonly Row[] {
  const lines = sectionOf(heading).split('\n')
  const start = lines.findIndex((line, at) => cellsOf(line)[0] === firstColumn && /^\|[-|]+$/.test(lines[at + 1] ?? ''))
  if (start === -1) throw new Error(`"${heading}" has no table of "${firstColumn}"`)
  const columns = cellsOf(lines[start] ?? '')
  const length = lines.slice(start).findIndex((line) => !line.startsWith('|'))
  const body = lines.slice(start + 2, length === -1 ? undefined : start + length)
  return body.map((line) => Object.fromEntries(cellsOf(line).map((cell, index) => [columns[index] ?? '', cell])))
}

/** What follows the words on their line. Throws when no line of the section begins with them. */
export function lineAfter(heading: string, words: string): string {
  const line = sectionOf(heading)
    .split('\n')
    .find((candidate) => candidate.startsWith(words))
  if (line === undefined) throw new Error(`"${heading}" has no line that begins with "${words}"`)
  return line.slice(words.length).trim().replace(/\.$/, '')
}

export const listOf = (text: string): string[] => text.split(',').map((item) => item.trim())
