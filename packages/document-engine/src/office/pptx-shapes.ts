import { EngineFault } from '../model/document.js'
import { escapeHtml } from '../text/escape-html.js'
import { equationTex } from './equation-tex.js'
import { FIXED_PITCH } from './fixed-pitch.js'
import { codeLines, joinedCode, withBox } from './html-pieces.js'
import { NumberFormat } from './xlsx-number-format.js'
import { childElements, descendant, relationId, textOf, type XmlElement } from './xml.js'

export type Marker = 'none' | 'bullet' | 'number'

interface Paragraph {
  /** Level, from 0. */
  readonly level: number
  readonly marker: Marker
  /** Number of the first item of a numbered list. */
  readonly start: string
  readonly html: string
}

export interface TextContext {
  /** Marker that a paragraph without one inherits at a level. */
  readonly inherited: (level: number) => Marker | undefined
  /** URLs by the ids of their relationships. */
  readonly links: ReadonlyMap<string, string>
  /** Called for an equation of which a part is not read. */
  readonly onUnreadEquation?: () => void
}

/** A text body (`txBody`) as HTML: paragraphs, and lists nested by their levels. */
export function textBodyHtml(body: XmlElement | undefined, context: TextContext): string {
  const paragraphs = childElements(body, 'p').map((paragraph) => readParagraph(paragraph, body, context))
  return listsHtml(paragraphs.filter(({ html }) => html.trim() !== ''))
}

/** The runs of a paragraph, with their emphasis and links. */
export function inlineHtml(
  paragraph: XmlElement,
  links: TextContext['links'],
  onUnreadEquation?: TextContext['onUnreadEquation'],
): string {
  return childElements(paragraph)
    .map((run) => {
      if (run.name === 'br') return '<br>'
      if (run.name === 'AlternateContent') return equationHtml(descendant(run, 'Choice', 'm'), onUnreadEquation)
      if (run.name === 'm') return equationHtml(run, onUnreadEquation)
      if (run.name !== 'r' && run.name !== 'fld') return ''
      return runHtml(descendant(run, 'rPr'), escapeHtml(textOf(descendant(run, 't'))), links)
    })
    .join('')
}

/** An equation in the form that MathJax keeps it in. */
function equationHtml(math: XmlElement | undefined, onUnread: TextContext['onUnreadEquation']): string {
  const displayed = childElements(descendant(math, 'oMathPara'), 'oMath')
  const type = displayed.length > 0 ? 'math/tex; mode=display' : 'math/tex'
  return [...displayed, ...childElements(math, 'oMath')]
    .map((equation) => {
      const { tex, isWhole } = equationTex(equation)
      if (!isWhole) onUnread?.()
      return `<script type="${type}">${tex.replaceAll('</', '< /')}</script>`
    })
    .join('')
}

/** Marker in the properties of a paragraph or of a level of a list style. */
export function markerOf(properties: XmlElement | undefined): Marker | undefined {
  for (const { name } of childElements(properties)) {
    if (name === 'buNone') return 'none'
    if (name === 'buAutoNum') return 'number'
    if (name === 'buChar' || name === 'buBlip') return 'bullet'
  }
  return undefined
}

function runHtml(properties: XmlElement | undefined, text: string, links: TextContext['links']): string {
  if (text.trim() === '') return text
  const isOn = (name: string): boolean => /^(?:1|true)$/.test(properties?.attributes[name] ?? '')
  let html = text
  if (isOn('b')) html = `<strong>${html}</strong>`
  if (isOn('i')) html = `<em>${html}</em>`
  if (/^(?:sng|dbl)Strike$/.test(properties?.attributes.strike ?? '')) html = `<s>${html}</s>`
  const raised = Number(properties?.attributes.baseline ?? 0)
  if (raised !== 0 && Number.isFinite(raised)) html = raised > 0 ? `<sup>${html}</sup>` : `<sub>${html}</sub>`
  if (FIXED_PITCH.test(descendant(properties, 'latin')?.attributes.typeface ?? '')) html = `<code>${text}</code>`
  const url = links.get(relationId(descendant(properties, 'hlinkClick')?.attributes ?? {}) ?? '')
  return url === undefined ? html : `<a href="${escapeHtml(url)}">${html}</a>`
}

function readParagraph(paragraph: XmlElement, body: XmlElement | undefined, context: TextContext): Paragraph {
  const properties = descendant(paragraph, 'pPr')
  const level = Math.min(8, Math.max(0, Number(properties?.attributes.lvl) || 0))
  const ownStyle = descendant(body, 'lstStyle', `lvl${level + 1}pPr`)
  return {
    level,
    marker: markerOf(properties) ?? markerOf(ownStyle) ?? context.inherited(level) ?? 'none',
    start: /^\d{1,5}$/.exec(descendant(properties, 'buAutoNum')?.attributes.startAt ?? '')?.[0] ?? '1',
    html: inlineHtml(paragraph, context.links, context.onUnreadEquation),
  }
}

function listsHtml(paragraphs: readonly Paragraph[]): string {
  const html: string[] = []
  const open: ('ul' | 'ol')[] = []
  const closeTo = (depth: number): void => {
    while (open.length > depth) html.push(`</li></${open.pop() ?? ''}>`)
  }
  let code: string[] = []
  const endCode = (): void => {
    if (code.length > 0) html.push(`<pre>${code.join('\n')}</pre>`)
    code = []
  }
  for (const { level, marker, start, html: content } of paragraphs) {
    const lines = marker === 'none' ? codeLines(content) : undefined
    if (lines !== undefined) {
      closeTo(0)
      code.push(lines)
      continue
    }
    endCode()
    if (marker === 'none') {
      closeTo(0)
      html.push(`<p>${joinedCode(content)}</p>`)
      continue
    }
    const tag = marker === 'number' ? 'ol' : 'ul'
    // At most one level below the open lists: a level may be skipped.
    const depth = Math.min(level, open.length) + 1
    closeTo(depth)
    if (open.length === depth && open.at(-1) !== tag) closeTo(depth - 1)
    if (open.length === depth) html.push('</li><li>')
    else {
      open.push(tag)
      html.push(tag === 'ol' ? `<ol start="${start}"><li>` : '<ul><li>')
    }
    html.push(withBox(joinedCode(content)))
  }
  endCode()
  closeTo(0)
  return html.join('')
}

/** Most cells of a chart's table; missing points count as well. */
const MOST_CELLS = 200_000

interface Series {
  readonly name: string
  /** Categories and values by the index of the point. */
  readonly categories: ReadonlyMap<string, string>
  readonly values: ReadonlyMap<string, string>
}

/** Values of a chart as a table of series by categories; '' when it stores none. */
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

/** Empty categories for points that only have a value. */
function missing({ categories, values }: Series): [string, string][] {
  return [...values.keys()].filter((index) => !categories.has(index)).map((index) => [index, ''])
}

/** Points of the cache below an element; numbers in their format. */
function points(element: XmlElement | undefined): Map<string, string> {
  const found = new Map<string, string>()
  const open = [...childElements(element)]
  let format: NumberFormat | undefined
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (next.name === 'numCache' || next.name === 'numLit')
      format = new NumberFormat(textOf(descendant(next, 'formatCode')))
    if (next.name === 'pt') found.set(next.attributes.idx ?? '', pointText(textOf(descendant(next, 'v')), format))
    else open.push(...childElements(next).reverse())
  }
  return found
}

function pointText(value: string, format: NumberFormat | undefined): string {
  return format === undefined ? value : format.text(value, false)
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
