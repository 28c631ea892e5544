import { readTree } from '../html/html-parser.js'
import { htmlToMarkdown } from '../markdown/html-to-markdown.js'
import {
  EngineFault,
  type EngineInput,
  type EngineLimits,
  type EngineOutput,
  type EngineWarning,
  type EngineWarningCode,
} from '../model/document.js'
import { escapeHtml } from '../text/escape-html.js'
import {
  alternativeText,
  coreMetadata,
  lacking,
  linksOf,
  mainPart,
  OfficePackage,
  relationshipsOf,
  shortLine,
} from './office-package.js'
import { type Box, boxOf, type PlacedShape, placedShapes, readingOrder } from './pptx-order.js'
import { chartHtml, inlineHtml, type Marker, markerOf, textBodyHtml, type TextContext } from './pptx-shapes.js'
import { childElements, descendant, parseXml, relationId, type XmlElement } from './xml.js'

/** The placeholders of a slide's layout, from which those of the slide inherit. */
interface LayoutModels {
  readonly byIndex: ReadonlyMap<string, XmlElement>
  readonly byType: ReadonlyMap<string, XmlElement>
  /** Those of the layout's master. */
  readonly ofMaster: ReadonlyMap<string, XmlElement>
}

interface SlideContext {
  readonly models: LayoutModels
  /** URLs by the ids of their relationships. */
  readonly links: ReadonlyMap<string, string>
  /** A chart, or the data of a diagram (SmartArt), by the id of its relationship. */
  readonly related: (id: string) => XmlElement | undefined
  readonly findings: SlideFindings
}

/** What a slide holds that is not read. */
interface SlideFindings {
  droppedPictures: number
  unreadObjects: number
  unreadEquations: number
}

/** Placeholders that are the same on every slide: date, footer, number. */
const FURNITURE: ReadonlySet<string> = new Set(['dt', 'ftr', 'sldNum', 'hdr'])
/** Placeholders whose paragraphs have bullets by default; '' is one for any content. */
const BULLETED: ReadonlySet<string> = new Set(['', 'body', 'obj'])

const TITLES: ReadonlySet<string> = new Set(['title', 'ctrTitle'])

/** The shapes of a slide by their places, its title first. */
function slideHtml(slide: XmlElement, context: SlideContext): string {
  const placed = visibleShapes(slide).map(({ shape, box }) => ({
    shape,
    box: box ?? inheritedBox(shape, context.models),
  }))
  const isTitle = ({ shape }: PlacedShape): boolean => TITLES.has(placeholderOf(shape)?.attributes.type ?? '')
  const others = readingOrder(placed.filter((one) => !isTitle(one)))
  return [...placed.filter(isTitle), ...others].map(({ shape }) => shapeHtml(shape, context)).join('')
}

/** The place of a placeholder in the layout of its slide, else in the master of that. */
function inheritedBox(shape: XmlElement, models: LayoutModels): Box | undefined {
  const placeholder = placeholderOf(shape)
  if (placeholder === undefined) return undefined
  const { type = '', idx } = placeholder.attributes
  const model = idx === undefined ? models.byType.get(type) : models.byIndex.get(idx)
  const ofMaster = models.ofMaster.get(TITLES.has(type) ? 'title' : BULLETED.has(type) ? 'body' : type)
  return (model && boxOf(model)) ?? (ofMaster && boxOf(ofMaster))
}

/** The speaker's notes under a heading of their own; '' without any. */
function notesHtml(notes: XmlElement | undefined): string {
  const context: TextContext = { inherited: () => undefined, links: new Map() }
  const html =
    notes === undefined ? [] : shapes(notes).filter((shape) => placeholderOf(shape)?.attributes.type === 'body')
  const text = html.map((shape) => textBodyHtml(descendant(shape, 'txBody'), context)).join('')
  return text === '' ? '' : `<h3>Notes</h3>${text}`
}

function shapes(root: XmlElement): XmlElement[] {
  return visibleShapes(root).map(({ shape }) => shape)
}

function visibleShapes(root: XmlElement): PlacedShape[] {
  return placedShapes(descendant(root, 'cSld', 'spTree')).filter(
    ({ shape }) => propertiesOf(shape)?.attributes.hidden !== '1',
  )
}

function shapeHtml(shape: XmlElement, context: SlideContext): string {
  if (shape.name === 'graphicFrame') return graphicHtml(shape, context)
  if (shape.name === 'pic') {
    const description = alternativeText(propertiesOf(shape)?.attributes.descr)
    if (isMedium(shape)) context.findings.unreadObjects += 1
    else if (description === '' && !isDecoration(shape)) context.findings.droppedPictures += 1
    return description === '' ? '' : `<p>${escapeHtml(description)}</p>`
  }
  const body = descendant(shape, 'txBody')
  const placeholder = placeholderOf(shape)
  const type = placeholder?.attributes.type ?? ''
  if (FURNITURE.has(type)) return ''
  if (type === 'title' || type === 'ctrTitle') return titleHtml(body)
  const inherited = (level: number): Marker | undefined =>
    placeholder === undefined ? undefined : inheritedMarker(placeholder, level, context.models)
  return textBodyHtml(body, {
    inherited,
    links: context.links,
    onUnreadEquation: () => (context.findings.unreadEquations += 1),
  })
}

/** Whether a picture stands for a film or a sound. */
function isMedium(shape: XmlElement): boolean {
  return childElements(descendant(nonVisual(shape), 'nvPr')).some(({ name }) =>
    /^(?:video|audio|quickTime|wav)/.test(name),
  )
}

function isDecoration(shape: XmlElement): boolean {
  const extensions = childElements(descendant(propertiesOf(shape), 'extLst'), 'ext')
  return extensions.some((one) => /^(?:1|true)$/.test(descendant(one, 'decorative')?.attributes.val ?? ''))
}

function titleHtml(body: XmlElement | undefined): string {
  const lines = childElements(body, 'p').map((paragraph) => inlineHtml(paragraph, new Map()))
  const text = lines
    .join(' ')
    .replaceAll(/<[^<>]*>/g, ' ')
    .trim()
  return text === '' ? '' : `<h2>${text}</h2>`
}

function layoutModels(layout: XmlElement | undefined, master: XmlElement | undefined): LayoutModels {
  const byIndex = new Map<string, XmlElement>()
  const byType = new Map<string, XmlElement>()
  for (const shape of layout === undefined ? [] : shapes(layout)) {
    const { type = '', idx = '' } = placeholderOf(shape)?.attributes ?? {}
    byIndex.set(idx, shape)
    byType.set(type, shape)
  }
  const ofMaster = new Map<string, XmlElement>()
  for (const shape of master === undefined ? [] : shapes(master)) {
    ofMaster.set(placeholderOf(shape)?.attributes.type ?? '', shape)
  }
  return { byIndex, byType, ofMaster }
}

function inheritedMarker({ attributes }: XmlElement, level: number, models: LayoutModels): Marker | undefined {
  const { type = '', idx } = attributes
  const model = idx === undefined ? models.byType.get(type) : models.byIndex.get(idx)
  const style = descendant(model, 'txBody', 'lstStyle', `lvl${level + 1}pPr`)
  return markerOf(style) ?? (BULLETED.has(type) ? 'bullet' : undefined)
}

function graphicHtml(frame: XmlElement, context: SlideContext): string {
  const data = descendant(frame, 'graphic', 'graphicData')
  const table = descendant(data, 'tbl')
  if (table !== undefined) return tableHtml(table, context.links)
  if (descendant(data, 'oleObj') !== undefined || descendant(data, 'AlternateContent') !== undefined)
    context.findings.unreadObjects += 1
  const chart = relationId(descendant(data, 'chart')?.attributes ?? {})
  if (chart !== undefined) return chartHtml(context.related(chart))
  const diagram = relationId(descendant(data, 'relIds')?.attributes ?? {}, 'dm')
  const points = diagram === undefined ? [] : childElements(descendant(context.related(diagram), 'ptLst'), 'pt')
  const inherited = (): Marker => 'bullet'
  return points.map((point) => textBodyHtml(descendant(point, 't'), { inherited, links: context.links })).join('')
}

function tableHtml(table: XmlElement, links: TextContext['links']): string {
  const rows = childElements(table, 'tr').map((row) => {
    const cells = childElements(row, 'tc').filter((cell) => !isCovered(cell))
    return `<tr>${cells.map((cell) => cellHtml(cell, links)).join('')}</tr>`
  })
  return `<table>${rows.join('')}</table>`
}

/** Whether a cell to its left or above spans it. */
function isCovered({ attributes }: XmlElement): boolean {
  return /^(?:1|true)$/.test(attributes.hMerge ?? '') || /^(?:1|true)$/.test(attributes.vMerge ?? '')
}

function cellHtml(cell: XmlElement, links: TextContext['links']): string {
  const span = (name: string): string => /^\d{1,3}$/.exec(cell.attributes[name] ?? '')?.[0] ?? '1'
  const lines = childElements(descendant(cell, 'txBody'), 'p').map((paragraph) => inlineHtml(paragraph, links))
  return `<td colspan="${span('gridSpan')}" rowspan="${span('rowSpan')}">${lines.join('<br>')}</td>`
}

/** `cNvPr` of any kind of shape: it names, describes and hides it. */
function propertiesOf(shape: XmlElement): XmlElement | undefined {
  return descendant(nonVisual(shape), 'cNvPr')
}

function placeholderOf(shape: XmlElement): XmlElement | undefined {
  return descendant(nonVisual(shape), 'nvPr', 'ph')
}

function nonVisual(shape: XmlElement): XmlElement | undefined {
  return childElements(shape).find(({ name }) => name.startsWith('nv') && name.endsWith('Pr'))
}

/**
 * A PowerPoint presentation: its slides in the order of the show, hidden ones left out, each but the first after a line
 * `<!-- slide N -->`, with its notes.
 *
 * @throws EngineFault `broken`, `too_large`, `encrypted`
 */
export function readPptx(input: EngineInput, limits: EngineLimits): EngineOutput {
  const pack = new OfficePackage(input.bytes, limits)
  const layouts = new Map<string, LayoutModels>()
  const slides = slideParts(pack).flatMap((part) => readSlide(pack, part, layouts) ?? [])
  const marked = slides.map(({ markdown }, index) =>
    index === 0 ? markdown : `<!-- slide ${index + 1} -->\n\n${markdown}`,
  )
  const metadata = coreMetadata(pack)
  const title = metadata.title || shortLine(/^## (.+)/.exec(slides[0]?.markdown ?? '')?.[1] ?? '')
  const isEmpty = slides.every((slide) => slide.markdown === '')
  const markdown = isEmpty
    ? ''
    : `${marked
        .map((slide) => slide.trim())
        .join('\n\n')
        .trim()}\n`
  const warnings = warningsOf(slides.map(({ findings }) => findings))
  return {
    kind: 'pptx',
    metadata: { ...metadata, title, warnings },
    html: '',
    markdown,
    pages: Math.max(1, slides.length),
  }
}

function slideParts(pack: OfficePackage): string[] {
  const part = mainPart(pack) ?? 'ppt/presentation.xml'
  const root = partRoot(pack, part)
  if (root === undefined) throw new EngineFault('broken', 'The file is damaged: it is no complete presentation.')
  const relationships = relationshipsOf(pack, part)
  return childElements(descendant(root, 'sldIdLst'), 'sldId').flatMap(({ attributes }) => {
    const related = relationships.get(relationId(attributes) ?? '')
    return related === undefined ? [] : [related.target]
  })
}

function warningsOf(findings: readonly SlideFindings[]): EngineWarning[] {
  const warnings = (
    code: EngineWarningCode,
    name: keyof SlideFindings,
    one: string,
    several: string,
  ): EngineWarning[] => {
    const pages = findings.flatMap((slide, index) => (slide[name] > 0 ? [index + 1] : []))
    const count = findings.reduce((sum, slide) => sum + slide[name], 0)
    return lacking(code, count, one, several).map((warning) => ({ ...warning, pages }))
  }
  return [
    ...warnings('pictures_dropped', 'droppedPictures', 'picture has no description', 'pictures have no description'),
    ...warnings(
      'equations_unread',
      'unreadEquations',
      'equation is not read as a whole',
      'equations are not read as a whole',
    ),
    ...warnings('attachments_unread', 'unreadObjects', 'embedded object is not read', 'embedded objects are not read'),
  ]
}

interface Slide {
  readonly markdown: string
  readonly findings: SlideFindings
}

/** Undefined for a slide that is hidden or missing. */
function readSlide(pack: OfficePackage, part: string, layouts: Map<string, LayoutModels>): Slide | undefined {
  const root = partRoot(pack, part)
  if (root === undefined || /^(?:0|false)$/.test(root.attributes.show ?? '')) return undefined
  const relationships = relationshipsOf(pack, part)
  const target = (type: string): string => [...relationships.values()].find((one) => one.type === type)?.target ?? ''
  const layoutPart = target('slideLayout')
  const models = layouts.get(layoutPart) ?? readModels(pack, layoutPart)
  layouts.set(layoutPart, models)
  const findings: SlideFindings = { droppedPictures: 0, unreadObjects: 0, unreadEquations: 0 }
  const html = slideHtml(root, {
    models,
    links: linksOf(relationships),
    related: (id) => partRoot(pack, relationships.get(id)?.target ?? ''),
    findings,
  })
  const tree = readTree(html + notesHtml(partRoot(pack, target('notesSlide'))))
  return { markdown: htmlToMarkdown(tree.body, { baseUrl: '' }), findings }
}

function readModels(pack: OfficePackage, layoutPart: string): LayoutModels {
  const master = [...relationshipsOf(pack, layoutPart).values()].find(({ type }) => type === 'slideMaster')
  return layoutModels(partRoot(pack, layoutPart), master && partRoot(pack, master.target))
}

function partRoot(pack: OfficePackage, part: string): XmlElement | undefined {
  const bytes = pack.read(part)
  return bytes && parseXml(bytes)
}
