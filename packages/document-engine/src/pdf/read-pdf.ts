import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  EngineFault,
  type EngineInput,
  type EngineLimits,
  type EngineMetadata,
  type EngineOutput,
  type EngineWarning,
  faultBehind,
  languageTag,
  NO_METADATA,
} from '../model/document.js'
import type { OutlineEntry, PageRemark, PdfPage } from './layout/layout-model.js'
import { pagesToMarkdown } from './layout/pages-to-markdown.js'
import { PageReader, settledPage, type UnsettledPage } from './page-reader.js'
import { fontLoading, loadPdfjs, type PdfDocument, pdfjsData } from './pdfjs.js'
import { type PageGaps, pdfWarnings } from './warnings.js'

const MAX_LENGTH = 2048
/** Least length of a repeated half: shorter ones occur in words such as "bonbon". */
const MIN_REPEATED = 4
const LONE_SURROGATE = /\p{Cs}$/u
const UNREADABLE = /[\p{Cc}\p{Co}\p{Cs}\uFEFF\uFFFD]+/gu
/** Titles that a program made from the file's name, or default titles. */
const ACCIDENTAL_TITLES = [
  /^microsoft (?:office )?(?:word|powerpoint|excel|publisher|visio)\b/i,
  /^(?:untitled|unbenannt|sans titre|sin título|senza titolo|无标题|未命名|無題)[\s\d-]*$/iu,
  /^(?:document|presentation|powerpoint presentation|slide|title|no title|book|doc)\s*\d*$/i,
  /^\S*\.(?:docx?|pdf|pptx?|xlsx?|rtf|odt|odp|tex|dvi|e?ps|indd|qxd|pmd|fm|p65|html?|txt|md|cdr|ai|wpd)$/i,
  /\.(?:docx?|pptx?|xlsx?|dvi|indd|qxd|fm)$/i,
]

/** Metadata from pdf.js: the document information dictionary, and XMP if present. */
interface MetadataSources {
  readonly info: unknown
  readonly xmp: { get(name: string): unknown } | null
}

/** Title, description (the subject) and keywords; from XMP where the dictionary has none. */
export function pdfMetadata({ info, xmp }: MetadataSources): EngineMetadata {
  const said = (name: string) => textOf(typeof info === 'object' && info !== null ? Reflect.get(info, name) : '')
  const xmpSaid = (name: string) => textOf(xmp?.get(name))
  return {
    ...NO_METADATA,
    title:
      [said('Title'), withoutRepeat(xmpSaid('dc:title'))].find((title) => title !== '' && !isAccidental(title)) ?? '',
    description: said('Subject') || withoutRepeat(xmpSaid('dc:description')),
    keywords: said('Keywords') || xmpSaid('pdf:keywords') || xmpSaid('dc:subject'),
    // pdf.js has the catalog's `Lang` there.
    language: languageTag(said('Language')) || languageTag(xmpSaid('dc:language')),
  }
}

function isAccidental(title: string): boolean {
  return ACCIDENTAL_TITLES.some((pattern) => pattern.test(title))
}

/** pdf.js joins the languages of an XMP alternative; often two are equal. */
function withoutRepeat(text: string): string {
  const half = text.slice(0, text.length / 2)
  return half.length >= MIN_REPEATED && half + half === text ? half : text
}

/** XMP values may be lists, of languages or of words. */
function textOf(value: unknown): string {
  if (Array.isArray(value)) return cleanText(value.filter((part) => typeof part === 'string').join(', '), MAX_LENGTH)
  return typeof value === 'string' ? cleanText(value, MAX_LENGTH) : ''
}

/** One line of limited length, without control and similar characters. */
export function cleanText(text: string, maxLength: number): string {
  const oneLine = text
    .slice(0, 4 * maxLength)
    .replace(/\s+/gu, ' ')
    .replace(UNREADABLE, '')
    .trim()
  return oneLine.length <= maxLength ? oneLine : `${oneLine.slice(0, maxLength - 1).replace(LONE_SURROGATE, '')}…`
}

const MAX_LEVELS = 10
const MAX_ENTRIES = 5000
const MAX_TITLE_LENGTH = 500

interface OutlineNode {
  readonly title: string
  readonly items: readonly OutlineNode[]
}

/** The document's own table of contents in the order of reading; empty when it has none. */
export function outlineEntries(nodes: readonly OutlineNode[] | null, level = 1): OutlineEntry[] {
  if (nodes === null || level > MAX_LEVELS) return []
  const entries: OutlineEntry[] = []
  for (const node of nodes) {
    if (entries.length >= MAX_ENTRIES) break
    const title = cleanText(node.title, MAX_TITLE_LENGTH)
    if (title !== '') entries.push({ title, level })
    entries.push(...outlineEntries(node.items, level + 1))
  }
  return entries.slice(0, MAX_ENTRIES)
}

/**
 * Reads the text of a PDF. Throws an `EngineFault`: `encrypted`, `too_large` (pages, or text in UTF-16 units), `no_text`,
 * `broken`. Gives the event loop a turn between pages; the input's bytes stay as they are.
 */
export async function readPdf(input: EngineInput, limits: EngineLimits): Promise<EngineOutput> {
  const { document, close } = await openPdf(input)
  try {
    if (document.numPages > limits.pages) {
      throw new EngineFault('too_large', `The PDF has ${document.numPages} pages; the limit is ${limits.pages}.`)
    }
    const { pages, remarks, warnings } = await readPages(document, limits)
    const markdown = pagesToMarkdown(pages, await outlineOf(document), remarks)
    const metadata = { ...(await metadataOf(document)), warnings }
    return { kind: 'pdf', metadata, html: '', markdown, pages: document.numPages }
  } finally {
    await close()
  }
}

async function openPdf(input: EngineInput): Promise<{ document: PdfDocument; close: () => Promise<void> }> {
  const pdfjs = await loadPdfjs()
  const task = pdfjs.getDocument({
    // A copy, because pdf.js transfers the buffer.
    data: new Uint8Array(input.bytes),
    ...pdfjsData(),
    ...(input.baseUrl === '' ? {} : { docBaseUrl: input.baseUrl }),
    verbosity: pdfjs.VerbosityLevel.ERRORS,
    isEvalSupported: false,
    useSystemFonts: false,
    useWasm: false,
    ...fontLoading(),
    isOffscreenCanvasSupported: false,
    isImageDecoderSupported: false,
    // Pictures are not used; decoding them would cost more than all the text.
    maxImageSize: 0,
  })
  const close = () => task.destroy().catch(() => undefined)
  try {
    return { document: await task.promise, close }
  } catch (error) {
    await close()
    throw openingFault(error)
  }
}

function openingFault(error: unknown): Error {
  if (error instanceof Error && error.name === 'PasswordException') {
    return new EngineFault('encrypted', 'The PDF is encrypted and needs a password.')
  }
  return faultBehind(error, 'broken', 'The PDF is broken: its structure cannot be read.')
}

async function readPages(
  document: PdfDocument,
  limits: EngineLimits,
): Promise<{ pages: PdfPage[]; remarks: PageRemark[]; warnings: EngineWarning[] }> {
  const pdfjs = await loadPdfjs()
  const layers = await document.getOptionalContentConfig().catch(() => undefined)
  const reader = new PageReader(pdfjs, layers)
  const pages: UnsettledPage[] = []
  const remarks: PageRemark[] = []
  const gaps = new Map<number, PageGaps | undefined>()
  let characters = 0
  for (let number = 1; number <= document.numPages; number += 1) {
    const page = await readPage(document, number, reader)
    if (page === undefined) remarks.push({ page: number, text: `page ${number} cannot be read` })
    else pages.push(page)
    gaps.set(number, page?.gaps)
    characters += page?.texts.reduce((sum, { placed }) => sum + placed.text.length, 0) ?? 0
    if (characters > limits.decodedBytes) {
      throw new EngineFault('too_large', `The PDF has more than ${limits.decodedBytes} characters of text.`)
    }
    await nextTurn()
  }
  if (pages.length === 0) throw new EngineFault('broken', 'The PDF is broken: none of its pages can be read.')
  if (characters === 0) throw new EngineFault('no_text', withoutText(pages))
  const undrawn = reader.firstUndrawnPage
  if (undrawn !== undefined) {
    remarks.push({ page: undrawn, text: `from page ${undrawn} on drawn lines are not read: tables may be missing` })
  }
  const sorted = remarks.sort((one, other) => one.page - other.page)
  return { pages: pages.map(settledPage), remarks: sorted, warnings: pdfWarnings(gaps) }
}

function withoutText(pages: readonly UnsettledPage[]): string {
  return pages.some(({ gaps }) => gaps.isUnreadable)
    ? 'The text of the PDF cannot be read: its fonts do not say which characters their glyphs are, and glyphs are not recognised (no OCR).'
    : 'The PDF has no text layer: its pages hold images only, and text in images is not read (no OCR).'
}

/** Undefined when this page is broken, as others may be readable. Rejects when memory or stack ran out. */
async function readPage(document: PdfDocument, number: number, reader: PageReader): Promise<UnsettledPage | undefined> {
  try {
    const sheet = await document.getPage(number)
    try {
      return await reader.read(sheet)
    } finally {
      sheet.cleanup()
    }
  } catch (error) {
    if (error instanceof RangeError) throw error
    return undefined
  }
}

async function outlineOf(document: PdfDocument): Promise<OutlineEntry[]> {
  return outlineEntries(await document.getOutline().catch(() => null))
}

async function metadataOf(document: PdfDocument) {
  const { info, metadata } = await document.getMetadata().catch(() => ({ info: {}, metadata: null }))
  return pdfMetadata({ info, xmp: metadata })
}
