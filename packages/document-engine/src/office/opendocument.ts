import { readTree } from '../html/html-parser.js'
import { htmlToMarkdown } from '../markdown/html-to-markdown.js'
import {
  EngineFault,
  type EngineInput,
  type EngineLimits,
  type EngineMetadata,
  type EngineOutput,
  languageTag,
  NO_METADATA,
} from '../model/document.js'
import { decodeText } from '../text/charset.js'
import { escapeHtml } from '../text/escape-html.js'
import { restoreFootnotes, withoutMarks } from '../markdown/footnote-marks.js'
import { OdfStyles } from './odf-styles.js'
import { mathHtml, OdfText } from './odf-text.js'
import { lacking, OfficePackage, shortLine } from './office-package.js'
import { type Box, readingOrder } from './pptx-order.js'
import { childElements, descendant, parseXml, textOf, type XmlElement } from './xml.js'

interface OdfDocument {
  readonly body: XmlElement
  readonly styles: OdfStyles
  readonly text: OdfText
  readonly metadata: EngineMetadata
}

/**
 * An OpenDocument text (ODF 1.3). Comments are notes; headers and footers, indexes and what was deleted are left out.
 *
 * @throws EngineFault `broken`, `too_large`, `encrypted`
 */
export function readOdt(input: EngineInput, limits: EngineLimits): EngineOutput {
  const document = openDocument(input, limits)
  const html = document.text.blocks(descendant(document.body, 'text'))
  return outputOf('odt', document, markdownOf(html + document.text.notesHtml()), 1)
}

/** An OpenDocument spreadsheet: a heading and a table for each visible, non-empty sheet, cells as they are shown. */
export function readOds(input: EngineInput, limits: EngineLimits): EngineOutput {
  const document = openDocument(input, limits)
  const { styles, text } = document
  const sheets = childElements(descendant(document.body, 'spreadsheet'), 'table').flatMap((sheet) => {
    if (styles.isHiddenTable(sheet.attributes['table:style-name'])) return []
    const table = markdownOf(text.block(withoutEmptyEnd(sheet)))
    const name = `<h2>${escapeHtml(sheet.attributes['table:name'] ?? '')}</h2>`
    return table === '' ? [] : [`${markdownOf(name)}\n${table}`]
  })
  const notes = markdownOf(text.notesHtml())
  return outputOf(
    'ods',
    document,
    [...sheets, notes].filter((part) => part !== '').join('\n'),
    Math.max(1, sheets.length),
  )
}

/** An OpenDocument presentation: its slides in order, each but the first after a line `<!-- slide N -->`, with its notes. */
export function readOdp(input: EngineInput, limits: EngineLimits): EngineOutput {
  const document = openDocument(input, limits)
  const pages = childElements(descendant(document.body, 'presentation'), 'page')
  const slides = pages.map((page) => markdownOf(slideHtml(page, document.text)).trim())
  const notes = markdownOf(document.text.notesHtml())
  const marked = slides.map((slide, index) => (index === 0 ? slide : `<!-- slide ${index + 1} -->\n\n${slide}`.trim()))
  const isEmpty = slides.every((slide) => slide === '')
  const markdown = isEmpty ? '' : `${[...marked, notes.trim()].join('\n\n').trim()}\n`
  return outputOf('odp', document, markdown, Math.max(1, slides.length))
}

function outputOf(kind: 'odt' | 'ods' | 'odp', document: OdfDocument, markdown: string, pages: number): EngineOutput {
  const { droppedPictures, unreadObjects } = document.text.findings
  const warnings = [
    ...lacking('pictures_dropped', droppedPictures, 'picture has no description', 'pictures have no description'),
    ...lacking('attachments_unread', unreadObjects, 'embedded object is not read', 'embedded objects are not read'),
  ]
  return { kind, metadata: { ...document.metadata, warnings }, html: '', markdown, pages }
}

function markdownOf(html: string): string {
  return restoreFootnotes(htmlToMarkdown(readTree(html).body, { baseUrl: '' }))
}

function openDocument(input: EngineInput, limits: EngineLimits): OdfDocument {
  const pack = new OfficePackage(input.bytes, limits)
  const manifest = pack.read('META-INF/manifest.xml')
  if (manifest !== undefined && decodeText(manifest, '').includes(':encryption-data'))
    throw new EngineFault('encrypted', 'The file is protected by a password.')
  const content = partRoot(pack, 'content.xml')
  const body = descendant(content, 'body')
  if (body === undefined) throw new EngineFault('broken', 'The file is damaged: it is no complete OpenDocument file.')
  const styles = new OdfStyles(partRoot(pack, 'styles.xml'), content)
  const formula = (path: string): string => {
    const root = partRoot(pack, `${path.replace(/^\.\//, '').replace(/\/$/, '')}/content.xml`)
    return root?.name === 'math' ? mathHtml(root) : ''
  }
  return { body, styles, text: new OdfText(styles, formula), metadata: metadataOf(pack, styles) }
}

function partRoot(pack: OfficePackage, part: string): XmlElement | undefined {
  const bytes = pack.read(part)
  return bytes && parseXml(Buffer.from(withoutMarks(decodeText(bytes, ''))))
}

function metadataOf(pack: OfficePackage, styles: OdfStyles): EngineMetadata {
  const meta = descendant(partRoot(pack, 'meta.xml'), 'meta')
  const all = (name: string): string[] => childElements(meta, name).map((element) => shortLine(textOf(element)))
  return {
    ...NO_METADATA,
    title: all('title')[0] ?? '',
    description: (all('description')[0] ?? '') || (all('subject')[0] ?? ''),
    keywords: all('keyword').join(', '),
    language: languageTag(all('language')[0] ?? '') || styles.language,
  }
}

/** Writers fill the sheet to its last row and column with repeated empty cells. */
function withoutEmptyEnd(sheet: XmlElement): XmlElement {
  const trimmed = (element: XmlElement): XmlElement => {
    const children = childElements(element).filter(({ name }) => !/^table-column|^shapes$|^forms$/.test(name))
    const inner = children.map((child) => (child.name === 'table-cell' ? child : trimmed(child)))
    while (inner.length > 0 && isEmpty(inner.at(-1))) inner.pop()
    // Empty rows and cells between others: rows are dropped by the table, of cells only a few are kept.
    return { ...element, children: inner.map((child) => (isEmpty(child) ? onceEmpty(child) : child)) }
  }
  return trimmed(sheet)
}

function isEmpty(element: XmlElement | undefined): boolean {
  return element?.children.every((child) => (typeof child === 'string' ? child.trim() === '' : isEmpty(child))) ?? false
}

const MOST_EMPTY_CELLS = 256

function onceEmpty(element: XmlElement): XmlElement {
  const { attributes } = element
  const count = Math.min(MOST_EMPTY_CELLS, Number(attributes['table:number-columns-repeated'] ?? 1) || 1)
  const name = element.name === 'table-row' ? 'rows' : 'columns'
  const repeated = { [`table:number-${name}-repeated`]: name === 'rows' ? '1' : String(count) }
  return { ...element, attributes: { ...attributes, ...repeated }, children: [] }
}

/** The frames of a slide by their places, its title first. */
function slideHtml(page: XmlElement, text: OdfText): string {
  const frames = childElements(page).filter(({ name }) => name !== 'notes' && name !== 'forms')
  const classOf = (frame: XmlElement): string => frame.attributes['presentation:class'] ?? ''
  const shown = frames.filter((frame) => !/^(?:footer|header|date-time|page-number)$/.test(classOf(frame)))
  const titles = shown.filter((frame) => classOf(frame) === 'title')
  const others = readingOrder(
    shown.filter((frame) => classOf(frame) !== 'title').map((frame) => ({ frame, box: boxOf(frame) })),
  )
  const title = titles.map((frame) => textOf(frame).trim()).join(' ')
  const notes = childElements(descendant(page, 'notes'), 'frame')
    .map((frame) => text.block(frame))
    .join('')
  return [
    title === '' ? '' : `<h2>${escapeHtml(title)}</h2>`,
    ...others.map(({ frame }) => `<div>${text.block(frame)}</div>`),
    notes.replaceAll(/<[^<>]*>/g, '').trim() === '' ? '' : `<h3>Notes</h3>${notes}`,
  ].join('')
}

const UNITS: Readonly<Record<string, number>> = { cm: 28.35, mm: 2.835, in: 72, pt: 1, px: 0.75 }

function boxOf(frame: XmlElement): Box | undefined {
  const length = (name: string): number => {
    const match = /^(-?[\d.]{1,20})(cm|mm|in|pt|px)$/.exec(frame.attributes[`svg:${name}`] ?? '')
    return match === null ? Number.NaN : Number(match[1]) * (UNITS[match[2] ?? ''] ?? 1)
  }
  const [left, top] = [length('x'), length('y')]
  const [right, bottom] = [left + length('width'), top + length('height')]
  return Number.isFinite(right) && Number.isFinite(bottom) ? { left, top, right, bottom } : undefined
}
