import { PageReader, settledPage } from '../../src/document/engine/pdf/page-reader.js'
import type { PdfPage } from '../../src/document/engine/pdf/pdf-page.js'
import { loadPdfjs, pdfjsData } from '../../src/document/engine/pdf/pdfjs.js'

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
