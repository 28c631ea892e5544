import type { PdfPage, TextRun } from '@multi-model-gateway/document-engine/pdf/layout/pdf-page.js'
import { PageReader, settledPage } from '@multi-model-gateway/document-engine/pdf/page-reader.js'
import { loadPdfjs, pdfjsData } from '@multi-model-gateway/document-engine/pdf/pdfjs.js'
import { pdfOf, type PdfPageSource, type PdfSource } from './pdf-files.js'

/** The pages of a PDF as the layout gets them. */
export async function pagesOf(bytes: Uint8Array): Promise<PdfPage[]> {
  const pdfjs = await loadPdfjs()
  const task = pdfjs.getDocument({
    data: new Uint8Array(bytes),
    ...pdfjsData(),
    verbosity: pdfjs.VerbosityLevel.ERRORS,
    disableFontFace: true,
    useSystemFonts: false,
    maxImageSize: 0,
  })
  const document = await task.promise
  const reader = new PageReader(pdfjs, await document.getOptionalContentConfig())
  const pages = []
  for (let number = 1; number <= document.numPages; number += 1) {
    pages.push(await reader.read(await document.getPage(number)))
  }
  await task.destroy()
  return pages.map(settledPage)
}

/** A page of its own, given by its content or by all it is made of. Throws when the PDF has none. */
export async function onePage(page: PdfPageSource | string, source: Omit<PdfSource, 'pages'> = {}): Promise<PdfPage> {
  const [read] = await pagesOf(pdfOf({ ...source, pages: [typeof page === 'string' ? { content: page } : page] }))
  if (read === undefined) throw new Error('The PDF has no page.')
  return read
}

export const textsOf = (page: PdfPage): string[] => page.runs.map((run) => run.text)

/** Where a run of text begins, in whole points. */
export function placeOf(run: TextRun | undefined): number[] {
  return [run?.x, run?.y].map((value) => Math.round(Number(value)))
}
