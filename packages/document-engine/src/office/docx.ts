import { zipSync } from 'fflate'
import mammoth from 'mammoth'
import { htmlToMarkdown } from '../markdown/html-to-markdown.js'
import { EngineFault, type EngineInput, type EngineLimits, type EngineOutput, faultBehind } from '../model/document.js'
import { alternativeText } from './alternative-text.js'
import { coreMetadata, shortLine } from './core-properties.js'
import { markFootnotes, restoreFootnotes } from './docx-footnotes.js'
import { slimmed } from './docx-slimming.js'
import { type OfficeDocument, parseOfficeHtml } from './office-dom.js'
import { OfficePackage } from './office-package.js'
import { mainPart, relationshipsOf } from './relationships.js'
import { elementCounter } from './xml.js'

/** Of all parts together, looks left out: mammoth needs about two kilobytes for each. */
const MOST_ELEMENTS = 250_000
/** Parts beside the main one that hold text, or say what the text is. */
const PARTS_OF_TEXT: ReadonlySet<string> = new Set(['styles', 'numbering', 'footnotes', 'endnotes'])

const NO_WORD = 'The file is damaged: it is no complete Word document.'

/** Beyond mammoth's own: names of styles as Word, LibreOffice and pandoc write them. Tables of contents are left out. */
const STYLE_MAP = [
  "p[style-name='Title'] => h1:fresh",
  "p[style-name='heading 7'] => h6:fresh",
  "p[style-name='heading 8'] => h6:fresh",
  "p[style-name='heading 9'] => h6:fresh",
  ...['Quote', 'Intense Quote', 'Block Text', 'Quotations'].map(
    (name) => `p[style-name='${name}'] => blockquote > p:fresh`,
  ),
  ...['Code', 'Source Code', 'HTML Preformatted', 'Preformatted Text', 'Plain Text', 'macro'].map(
    (name) => `p[style-name='${name}'] => pre:separator('\\n')`,
  ),
  ...['Code', 'HTML Code', 'Verbatim Char', 'Source Text'].map((name) => `r[style-name='${name}'] => code`),
  "p[style-name='TOC Heading'] => !",
  ...Array.from({ length: 9 }, (_, index) => `p[style-name='toc ${index + 1}'] => !`),
]

/**
 * A Word document; pictures give way to their alternative text.
 *
 * @throws EngineFault `broken`, `too_large`, `encrypted`
 */
export async function readDocx(input: EngineInput, limits: EngineLimits): Promise<EngineOutput> {
  const pack = new OfficePackage(input.bytes, limits)
  const document = parseOfficeHtml(await convertedHtml(checkedParts(pack)))
  replacePictures(document)
  replaceCheckboxes(document)
  markFootnotes(document)
  const markdown = restoreFootnotes(htmlToMarkdown(document.body, { baseUrl: '' }))
  const metadata = coreMetadata(pack)
  const title = metadata.title || titleAtTop(document)
  return { kind: 'docx', metadata: { ...metadata, title }, html: '', markdown, pages: 1 }
}

/** Few writers fill in the properties; most documents begin with their title. */
function titleAtTop(document: OfficeDocument): string {
  const first = document.body.children[0]
  return first?.localName === 'h1' ? shortLine(first.textContent) : ''
}

/** A package of those parts alone that are read, each of them unpacked and looked through before. */
function checkedParts(pack: OfficePackage): Buffer {
  const main = mainPart(pack) ?? 'word/document.xml'
  if (pack.pathOf(main) === undefined) throw new EngineFault('broken', NO_WORD)
  const related = [...relationshipsOf(pack, main).values()].filter(({ type }) => PARTS_OF_TEXT.has(type))
  const texts = [main, ...related.map(({ target }) => target)]
  const parts: Record<string, Uint8Array> = {}
  const countElement = elementCounter(MOST_ELEMENTS)
  for (const name of new Set([
    '[Content_Types].xml',
    '_rels/.rels',
    ...texts.flatMap((text) => [text, relationsPart(text)]),
  ])) {
    const path = pack.pathOf(name)
    const bytes = pack.read(name)
    if (path === undefined || bytes === undefined) continue
    parts[path] = Buffer.from(slimmed(bytes, countElement))
  }
  const zip = zipSync(parts, { level: 0 })
  return Buffer.from(zip.buffer, zip.byteOffset, zip.byteLength)
}

async function convertedHtml(buffer: Buffer): Promise<string> {
  try {
    const converted = await mammoth.convertToHtml(
      { buffer },
      {
        styleMap: STYLE_MAP,
        includeEmbeddedStyleMap: false,
        externalFileAccess: false,
        convertImage: mammoth.images.imgElement(() => Promise.resolve({ src: '' })),
      },
    )
    return converted.value
  } catch (error) {
    throw faultBehind(error, 'broken', NO_WORD)
  }
}

function relationsPart(part: string): string {
  const folder = part.slice(0, part.lastIndexOf('/') + 1)
  return `${folder}_rels/${part.slice(folder.length)}.rels`
}

function replacePictures(document: OfficeDocument): void {
  for (const picture of document.querySelectorAll('img')) {
    picture.replaceWith(alternativeText(picture.getAttribute('alt')))
  }
}

/** Boxes at the beginning of a list item are Markdown's own; others become characters. */
function replaceCheckboxes(document: OfficeDocument): void {
  for (const box of document.querySelectorAll('input')) {
    if (box.parentElement?.localName === 'li') continue
    box.replaceWith(box.hasAttribute('checked') ? '☒' : '☐')
  }
}
