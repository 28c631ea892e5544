import { escapeMarkdown } from '../markdown/escape-markdown.js'
import { cellText, markdownTable } from '../markdown/markdown-table.js'
import { EngineFault, type EngineInput, type EngineLimits, type EngineOutput } from '../model/document.js'
import { coreMetadata } from './core-properties.js'
import { OfficePackage } from './office-package.js'
import { linksOf, relationshipsOf } from './relationships.js'
import { readSheet, type Sheet } from './xlsx-sheet.js'
import { readWorkbook } from './xlsx-workbook.js'

/**
 * An Excel workbook: a heading and a table for each sheet that can be seen and holds anything. Formulas are their last
 * results, merged cells their first one.
 *
 * @throws EngineFault `broken`, `too_large`, `encrypted`
 */
export function readXlsx(input: EngineInput, limits: EngineLimits): EngineOutput {
  const pack = new OfficePackage(input.bytes, limits)
  const workbook = readWorkbook(pack)
  const takeCharacters = characterBudget(limits.decodedBytes)
  const sections: string[] = []
  for (const { name, part } of workbook.sheets) {
    const bytes = pack.read(part)
    if (bytes === undefined) continue
    const sheet = readSheet(bytes, workbook, takeCharacters)
    const table = sheetTable(sheet, linksOf(relationshipsOf(pack, part)))
    if (table !== '') sections.push(`## ${escapeMarkdown(name)}\n\n${table}\n`)
  }
  const markdown = sections.join('\n')
  return { kind: 'xlsx', metadata: coreMetadata(pack), html: '', markdown, pages: Math.max(1, sections.length) }
}

/** One shared string of some kilobytes in each of a million cells is a bomb that no size of a part tells. */
function characterBudget(most: number): (count: number) => void {
  let left = most
  return (count) => {
    left -= count
    if (left < 0) throw new EngineFault('too_large', 'The workbook holds too much text.')
  }
}

function sheetTable({ rows, linkIds }: Sheet, links: ReadonlyMap<string, string>): string {
  return markdownTable(
    rows.map((cells) =>
      cells.map(({ reference, column, text }) => {
        const url = links.get(linkIds.get(reference) ?? '')
        return { column, markdown: url === undefined ? cellText(text) : linkCell(text, url) }
      }),
    ),
  )
}

function linkCell(text: string, url: string): string {
  const target = url.replaceAll(/[()<>|\\]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
  return `[${cellText(text)}](${target})`
}
