import { escapeHtml } from '../html/render-blocks.mjs'
import { officePackage, relations } from './write-docx.mjs'

const R = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'

/** Number formats with what Excel shows of a value: [code, value, text]. */
const FORMATS = [
  ['#,##0.00', (n) => n / 100, (n) => grouped(n, 2)],
  ['0%', (n) => (n % 101) / 100, (n) => `${n % 101}%`],
  ['0.0', (n) => n / 10, (n) => (n / 10).toFixed(1)],
  ['$#,##0.00', (n) => n / 100, (n) => `$${grouped(n, 2)}`],
  ['#,##0.00\\ [$€-407]', (n) => n / 100, (n) => `${grouped(n, 2)} €`],
  ['yyyy\\-mm\\-dd', (n) => 40_000 + (n % 5000), (n) => day(40_000 + (n % 5000)).slice(0, 10)],
  [
    'dd.mm.yyyy\\ hh:mm',
    (n) => 40_000 + (n % 5000) + 0.75,
    (n) =>
      `${day(40_000 + (n % 5000))
        .slice(0, 10)
        .split('-')
        .reverse()
        .join('.')} 18:00`,
  ],
  ['h:mm', (n) => (n % 24) / 24, (n) => `${n % 24}:00`],
  ['[h]:mm', (n) => 1 + (n % 24) / 24, (n) => `${24 + (n % 24)}:00`],
  ['0.00E+00', (n) => (n + 10_000) * 100, (n) => `${((n + 10_000) / 10_000).toFixed(2)}E+06`],
  ['0;(0)', (n) => -n - 1, (n) => `(${n + 1})`],
  ['0" kg"', (n) => n, (n) => `${n} kg`],
]

const day = (serial) => new Date((serial - 25_569) * 86_400_000).toISOString()

function grouped(hundredths, decimals) {
  const [whole, fraction] = (hundredths / 100).toFixed(decimals).split('.')
  return `${whole.replaceAll(/\B(?=(?:\d{3})+$)/g, ',')}.${fraction}`
}

/** A column of numbers in one format: {style, cells: of {value, text}}. */
export function formattedColumn(random, count) {
  const style = random.integer(0, FORMATS.length - 1)
  const [, value, text] = FORMATS[style]
  const numbers = Array.from({ length: count }, () => random.integer(1, 89_999))
  return { style, cells: numbers.map((number) => ({ value: value(number), text: text(number) })) }
}

/** Sheets of {name, header, labels, columns}. */
export function writeXlsx(sheets) {
  const text = (value) => `<c t="inlineStr"><is><t>${escapeHtml(value)}</t></is></c>`
  const content = ({ header, labels, columns }) => {
    const rows = labels.map(
      (label, row) =>
        text(label) + columns.map(({ style, cells }) => `<c s="${style}"><v>${cells[row].value}</v></c>`).join(''),
    )
    return [header.map(text).join(''), ...rows].map((row) => `<row>${row}</row>`).join('')
  }
  const parts = sheets.map((sheet, index) => [
    `xl/worksheets/sheet${index + 1}.xml`,
    `<worksheet><sheetData>${content(sheet)}</sheetData></worksheet>`,
  ])
  const formats = FORMATS.map(([code], index) => `<numFmt numFmtId="${164 + index}" formatCode="${escapeHtml(code)}"/>`)
  const styles = FORMATS.map((_, index) => `<xf numFmtId="${164 + index}"/>`)
  return officePackage('xl/workbook.xml', {
    'xl/workbook.xml': `<workbook xmlns:r="${R}"><sheets>${sheets.map(({ name }, index) => `<sheet name="${escapeHtml(name)}" r:id="s${index + 1}"/>`).join('')}</sheets></workbook>`,
    'xl/_rels/workbook.xml.rels': relations([
      ...sheets.map((_, index) => [`s${index + 1}`, 'worksheet', `worksheets/sheet${index + 1}.xml`]),
      ['styles', 'styles', 'styles.xml'],
    ]),
    'xl/styles.xml': `<styleSheet><numFmts>${formats.join('')}</numFmts><cellXfs>${styles.join('')}</cellXfs></styleSheet>`,
    ...Object.fromEntries(parts),
  })
}
