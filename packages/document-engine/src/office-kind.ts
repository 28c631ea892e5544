import { type DocumentKind, EngineFault } from './model/document.js'
import { zipEntries } from './office/zip-directory.js'

/** Folders that hold the parts of each kind (ECMA-376 leaves them to the writer, but all writers agree). */
const FOLDERS: readonly (readonly [folder: string, kind: DocumentKind])[] = [
  ['word/', 'docx'],
  ['xl/', 'xlsx'],
  ['ppt/', 'pptx'],
]

/** Streams of the old binary formats (MS-DOC, MS-XLS, MS-PPT, MS-OXMSG). */
const OLE_STREAMS: readonly (readonly [stream: string, words: string])[] = [
  ['WordDocument', 'in the old binary Word format (.doc); save it as .docx'],
  ['Workbook', 'in the old binary Excel format (.xls); save it as .xlsx'],
  ['PowerPoint Document', 'in the old binary PowerPoint format (.ppt); save it as .pptx'],
  ['__properties_version1.0', 'an Outlook message (.msg), which cannot be read'],
]

/** @throws EngineFault `unsupported` for other archives, `broken`, `too_large` */
export function zipKind(bytes: Uint8Array): DocumentKind {
  const names = [...zipEntries(bytes).keys()]
  if (names.includes('xl/workbook.bin')) {
    throw new EngineFault('unsupported', 'The document is a binary Excel workbook (.xlsb); save it as .xlsx.')
  }
  if (names.includes('[content_types].xml')) {
    for (const [folder, kind] of FOLDERS) if (names.some((name) => name.startsWith(folder))) return kind
  }
  const format = names.includes('mimetype') ? 'an OpenDocument file or an EPUB book' : 'a ZIP archive'
  throw new EngineFault('unsupported', `The document looks like ${format}, which cannot be read.`)
}

/** Office 97 to 2003 files are OLE containers, and so are newer ones that a password protects. */
export function oleFault(bytes: Uint8Array): EngineFault {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const holds = (stream: string): boolean => view.includes(Buffer.from(stream, 'utf16le'))
  if (holds('EncryptedPackage')) return new EngineFault('encrypted', 'The file is protected by a password.')
  const words = OLE_STREAMS.find(([stream]) => holds(stream))?.[1]
  return new EngineFault('unsupported', `The document is ${words ?? 'in an old binary format that cannot be read'}.`)
}
