import { EngineFault } from '../model/document.js'
import { escapeHtml } from './pptx-shapes.js'
import { kindOfFormat, type NumberKind, numberText } from './xlsx-number-format.js'
import { childElements, descendant, textOf, type XmlElement } from './xml.js'

/** Points that are not there make cells as well. */
const MOST_CELLS = 200_000

interface Series {
  readonly name: string
  /** By the index of the point, of which there are at most a few thousand. */
  readonly categories: ReadonlyMap<string, string>
  readonly values: ReadonlyMap<string, string>
}

/** The numbers that a chart draws, as a table of its series by its categories; '' when it keeps none. */
export function chartHtml(chart: XmlElement | undefined): string {
  const drawing = descendant(chart, 'chart')
  const plots = childElements(descendant(drawing, 'plotArea'))
  const series = plots.flatMap((plot) => childElements(plot, 'ser').map(readSeries))
  const categories = new Map(series.flatMap((one) => [...one.categories, ...missing(one)]))
  if (categories.size === 0) return ''
  if (categories.size * series.length > MOST_CELLS) {
    throw new EngineFault('too_large', 'A chart of the presentation has too many points.')
  }
  const header = row('th', ['', ...series.map(({ name }) => name)])
  const rows = [...categories].map(([index, category]) =>
    row('td', [category, ...series.map(({ values }) => values.get(index) ?? '')]),
  )
  const title = textRuns(descendant(drawing, 'title'))
  return `${title === '' ? '' : `<p>${escapeHtml(title)}</p>`}<table>${header}${rows.join('')}</table>`
}

function readSeries(series: XmlElement): Series {
  return {
    name: [...points(descendant(series, 'tx')).values()][0] ?? '',
    categories: points(descendant(series, 'cat') ?? descendant(series, 'xVal')),
    values: points(descendant(series, 'val') ?? descendant(series, 'yVal')),
  }
}

/** Points that have a value and no category. */
function missing({ categories, values }: Series): [string, string][] {
  return [...values.keys()].filter((index) => !categories.has(index)).map((index) => [index, ''])
}

/** The points of whatever cache stands below, numbers as their format has them. */
function points(element: XmlElement | undefined): Map<string, string> {
  const found = new Map<string, string>()
  const open = [...childElements(element)]
  let kind: NumberKind | undefined
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (next.name === 'numCache' || next.name === 'numLit') kind = kindOfFormat(textOf(descendant(next, 'formatCode')))
    if (next.name === 'pt') found.set(next.attributes.idx ?? '', pointText(textOf(descendant(next, 'v')), kind))
    else open.push(...childElements(next).reverse())
  }
  return found
}

function pointText(value: string, kind: NumberKind | undefined): string {
  return kind === undefined ? value : numberText(value, kind, false)
}

function textRuns(element: XmlElement | undefined): string {
  const paragraphs = childElements(descendant(element, 'tx', 'rich'), 'p')
  const lines = paragraphs.map((paragraph) => childElements(paragraph, 'r').map((run) => textOf(descendant(run, 't'))))
  return lines
    .map((runs) => runs.join(''))
    .join(' ')
    .trim()
}

function row(tag: 'td' | 'th', cells: readonly string[]): string {
  return `<tr>${cells.map((cell) => `<${tag}>${escapeHtml(cell)}</${tag}>`).join('')}</tr>`
}
