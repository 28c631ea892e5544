import { documentKind } from './document-kind.js'
import { readHtml } from './html/read-html.js'
import {
  type DocumentKind,
  EngineFault,
  type EngineInput,
  type EngineLimits,
  type EngineOutput,
} from './model/document.js'
import { readDocx } from './office/docx.js'
import { readEpub } from './office/epub.js'
import { readOdp, readOds, readOdt } from './office/opendocument.js'
import { readPptx } from './office/pptx.js'
import { readRtf } from './office/rtf.js'
import { readXlsx } from './office/xlsx.js'
import { readPdf } from './pdf/read-pdf.js'
import { readCsv } from './text/csv.js'
import { readEmail } from './text/email.js'
import { readNotebook } from './text/notebook.js'
import { readMarkdown, readText } from './text/read-text.js'

/** HTML and Markdown are two forms of one text. */
const FORMS = 2

type Reader = (input: EngineInput, limits: EngineLimits) => EngineOutput | Promise<EngineOutput>

const READERS: Readonly<Record<DocumentKind, Reader>> = {
  html: readHtml,
  pdf: readPdf,
  docx: readDocx,
  xlsx: readXlsx,
  pptx: readPptx,
  odt: readOdt,
  ods: readOds,
  odp: readOdp,
  epub: readEpub,
  rtf: readRtf,
  email: readEmail,
  notebook: readNotebook,
  csv: readCsv,
  markdown: readMarkdown,
  text: readText,
}

/**
 * Reads a document of any kind. A file without a title gets its name as title, a page does not.
 *
 * @throws EngineFault for an error caused by the document; any other error is a bug
 */
export async function readDocument(input: EngineInput, limits: EngineLimits): Promise<EngineOutput> {
  const output = await READERS[documentKind(input)](input, limits)
  if (output.markdown.trim() === '') throw new EngineFault('no_text', 'The document holds no text.')
  if (output.html.length + output.markdown.length > limits.decodedBytes * FORMS) {
    throw new EngineFault('too_large', 'The text of the document is too large.')
  }
  if (output.kind === 'html' || output.metadata.title !== '') return output
  return { ...output, metadata: { ...output.metadata, title: input.name } }
}
