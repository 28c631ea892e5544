import { setImmediate as nextTurn } from 'node:timers/promises'
import { EngineFault, type EngineInput, type EngineLimits, type EngineOutput, faultBehind } from '../model/document.js'
import { pagesToMarkdown } from './layout/pages-to-markdown.js'
import type { OutlineEntry, PageRemark, PdfPage } from './layout/pdf-page.js'
import { outlineEntries } from './outline.js'
import { PageReader, settledPage, type UnsettledPage } from './page-reader.js'
import { pdfMetadata } from './pdf-metadata.js'
import { loadPdfjs, type PdfDocument, pdfjsData } from './pdfjs.js'

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
    const { pages, remarks } = await readPages(document, limits)
    const markdown = pagesToMarkdown(pages, await outlineOf(document), remarks)
    return { kind: 'pdf', metadata: await metadataOf(document), html: '', markdown, pages: document.numPages }
  } finally {
    await close()
  }
}

async function openPdf(input: EngineInput): Promise<{ document: PdfDocument; close: () => Promise<void> }> {
  const pdfjs = await loadPdfjs()
  const task = pdfjs.getDocument({
    // pdf.js takes the buffer away from whoever gave it.
    data: new Uint8Array(input.bytes),
    ...pdfjsData(),
    ...(input.baseUrl === '' ? {} : { docBaseUrl: input.baseUrl }),
    verbosity: pdfjs.VerbosityLevel.ERRORS,
    isEvalSupported: false,
    useSystemFonts: false,
    useWasm: false,
    disableFontFace: true,
    isOffscreenCanvasSupported: false,
    isImageDecoderSupported: false,
    // No picture is ever decoded: it would cost more than all the text, and is not looked at.
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
): Promise<{ pages: PdfPage[]; remarks: PageRemark[] }> {
  const pdfjs = await loadPdfjs()
  const layers = await document.getOptionalContentConfig().catch(() => undefined)
  const reader = new PageReader(pdfjs, layers)
  const pages: UnsettledPage[] = []
  const remarks: PageRemark[] = []
  let characters = 0
  for (let number = 1; number <= document.numPages; number += 1) {
    const page = await readPage(document, number, reader)
    if (page === undefined) remarks.push({ page: number, text: `page ${number} cannot be read` })
    else pages.push(page)
    characters += page?.texts.reduce((sum, { placed }) => sum + placed.text.length, 0) ?? 0
    if (characters > limits.decodedBytes) {
      throw new EngineFault('too_large', `The PDF has more than ${limits.decodedBytes} characters of text.`)
    }
    await nextTurn()
  }
  if (pages.length === 0) throw new EngineFault('broken', 'The PDF is broken: none of its pages can be read.')
  if (characters === 0) {
    throw new EngineFault(
      'no_text',
      'The PDF has no text layer: its pages hold images only, and text in images is not read (no OCR).',
    )
  }
  const undrawn = reader.firstUndrawnPage
  if (undrawn !== undefined) {
    remarks.push({ page: undrawn, text: `from page ${undrawn} on drawn lines are not read: tables may be missing` })
  }
  return { pages: pages.map(settledPage), remarks: remarks.sort((one, other) => one.page - other.page) }
}

/** Undefined when this page is broken; the others may be whole. Rejects when memory or stack ran out. */
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
