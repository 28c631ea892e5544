import { zipSync } from 'fflate'
import { parseHTML } from 'linkedom'
import mammoth from 'mammoth'
import { htmlToMarkdown } from '../markdown/html-to-markdown.js'
import type { MarkupNode } from '../markdown/markup-node.js'
import { EngineFault, type EngineInput, type EngineLimits, type EngineOutput, faultBehind } from '../model/document.js'
import { alternativeText, coreMetadata, mainPart, OfficePackage, relationshipsOf, shortLine } from './office-package.js'
import { elementCounter, scanXml, type XmlElement } from './xml.js'

/** The part of linkedom's DOM that is used here; the project is compiled without DOM types. */
interface OfficeElement extends MarkupNode {
  readonly textContent: string
  readonly parentElement: OfficeElement | null
  readonly children: readonly OfficeElement[]
  readonly childNodes: readonly OfficeElement[]
  getAttribute(name: string): string | null
  hasAttribute(name: string): boolean
  querySelectorAll(selector: string): Iterable<OfficeElement>
  append(...nodes: (OfficeElement | string)[]): void
  before(...nodes: (OfficeElement | string)[]): void
  replaceWith(...nodes: (OfficeElement | string)[]): void
  remove(): void
}

interface OfficeDocument {
  readonly body: OfficeElement
  createElement(name: string): OfficeElement
  querySelectorAll(selector: string): Iterable<OfficeElement>
}

/** Parses HTML as the body of a document. */
function parseOfficeHtml(html: string): OfficeDocument {
  const window = parseHTML(`<!doctype html><html><body>${html}</body></html>`) as unknown as {
    document: OfficeDocument
  }
  return window.document
}

/** Unicode noncharacters that mark the number of a note until the Markdown is written; texts keep none of them. */
const OPEN = '\ufdd0'
const CLOSE = '\ufdd1'
const CLOSE_LABEL = '\ufdd2'

/**
 * Marks the references to notes and the notes themselves in HTML as mammoth makes it: `<sup><a
 * href="#footnote-7">[1]</a></sup>` in the text, and at the end a list of notes, in the order of their references.
 */
function markFootnotes(document: OfficeDocument): void {
  const notes = [...document.querySelectorAll('li[id^="footnote-"], li[id^="endnote-"]')]
  for (const reference of document.querySelectorAll('a[id^="footnote-ref-"], a[id^="endnote-ref-"]')) {
    const number = /\d+/.exec(reference.textContent)?.[0] ?? ''
    const parent = reference.parentElement
    const isRaised = parent?.localName === 'sup' && parent.children.length === 1
    const marked = isRaised ? parent : reference
    marked.replaceWith(mark(number))
  }
  notes.forEach((note, index) => {
    note.parentElement?.before(noteParagraph(document, note, `${OPEN}${String(index + 1)}${CLOSE_LABEL} `))
  })
  notes[0]?.parentElement?.remove()
}

/**
 * Replaces the marks by GFM footnotes. Where footnotes are not rendered, a reference before `(` or `:` would be a link or its
 * definition, and so would a note of a single word: a blank divides it if it has a scheme.
 */
function restoreFootnotes(markdown: string): string {
  return markdown
    .replaceAll(
      /\ufdd0(\d*)\ufdd1(?=([(:[]?))/g,
      (_mark, number: string, next: string) => `[^${number}]${next && '\\'}`,
    )
    .replaceAll(
      /\ufdd0(\d+)\ufdd2 (?:(?!https?:\/\/)([a-z][a-z\d+.-]*:)(?=\S))?/gi,
      (_mark, number: string, scheme = '') => (scheme === '' ? `[^${number}]: ` : `[^${number}]: ${scheme} `),
    )
}

function mark(number: string): string {
  return `${OPEN}${number}${CLOSE}`
}

/** Joins the content of a note into one paragraph: in GFM further ones would have to be indented. */
function noteParagraph(document: OfficeDocument, note: OfficeElement, label: string): OfficeElement {
  for (const back of note.querySelectorAll('a[href^="#footnote-ref-"], a[href^="#endnote-ref-"]')) back.remove()
  const paragraph = document.createElement('p')
  paragraph.append(label)
  for (const child of [...note.childNodes]) {
    paragraph.append(...(child.localName === 'p' ? child.childNodes : [child]), ' ')
  }
  return paragraph
}

/** Elements for appearance and page layout, half of a Word document. None holds text or is used by the style map. */
const LOOKS: ReadonlySet<string> = new Set(
  (
    'rFonts sz szCs bCs iCs lang color kern spacing position w noProof effect shd bdr fitText snapToGrid ' +
    'eastAsianLayout webHidden rtl cs em shadow outline ind jc tabs keepNext keepLines widowControl ' +
    'contextualSpacing pBdr outlineLvl autoSpaceDE autoSpaceDN adjustRightInd suppressAutoHyphens textAlignment ' +
    'cnfStyle divId tblW tblInd tblBorders tblLayout tblLook tblCellMar tblGrid tblOverlap tblpPr tcW tcBorders ' +
    'tcMar vAlign noWrap hideMark textDirection trHeight cantSplit sectPr proofErr lastRenderedPageBreak ' +
    'bookmarkEnd rPrChange pPrChange tcPrChange trPrChange'
  ).split(' '),
)

/**
 * A part of a Word document without elements for appearance, because mammoth builds a tree of every element. This scan also
 * refuses parts that are too deep or too large, or that declare entities.
 *
 * @param countElement called for each element that stays; throws when there were too many
 * @throws EngineFault `broken`, `too_large`
 */
function slimmed(bytes: Uint8Array, countElement: ReturnType<typeof elementCounter>): string {
  const xml: string[] = ['<?xml version="1.0" encoding="UTF-8"?>']
  let skippedDepth = 0
  scanXml(bytes, {
    open(name, attributes, prefixedName) {
      if (skippedDepth > 0 || LOOKS.has(name)) {
        skippedDepth += 1
        return
      }
      countElement()
      xml.push(`<${prefixedName}${attributeText(attributes)}>`)
    },
    text(text) {
      if (skippedDepth === 0) xml.push(escapeXml(text))
    },
    close(_name, prefixedName) {
      if (skippedDepth > 0) skippedDepth -= 1
      else xml.push(`</${prefixedName}>`)
    },
  })
  return xml.join('')
}

function attributeText(attributes: XmlElement['attributes']): string {
  let text = ''
  for (const [name, value] of Object.entries(attributes)) {
    // Ids of editing sessions (rsid): one to five on every paragraph and run.
    if (!name.includes(':rsid')) text += ` ${name}="${escapeXml(value).replaceAll('"', '&quot;')}"`
  }
  return text
}

/** Leaves out characters that XML 1.0 cannot represent, and those that mark notes. */
function escapeXml(text: string): string {
  return text
    .replaceAll(/[^\t\n\r\u0020-\ufdcf\ufdf0-\ufffd]/g, '')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
}

/** Most elements of all parts without appearance: mammoth needs about two kilobytes for each. */
const MOST_ELEMENTS = 250_000
/** Parts with text or with styles, besides the main part. */
const PARTS_OF_TEXT: ReadonlySet<string> = new Set(['styles', 'numbering', 'footnotes', 'endnotes'])

const NO_WORD = 'The file is damaged: it is no complete Word document.'

/** Style map in addition to mammoth's: names of Word, LibreOffice and pandoc. Tables of contents are left out. */
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
 * Reads a Word document; pictures are replaced by their alternative text.
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

/** Title from the first heading: few documents have one in their properties. */
function titleAtTop(document: OfficeDocument): string {
  const first = document.body.children[0]
  return first?.localName === 'h1' ? shortLine(first.textContent) : ''
}

/** A package with only the parts that mammoth reads, each inflated and checked before. */
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

/** Checkboxes at the start of a list item become Markdown tasks; others become characters. */
function replaceCheckboxes(document: OfficeDocument): void {
  for (const box of document.querySelectorAll('input')) {
    if (box.parentElement?.localName === 'li') continue
    box.replaceWith(box.hasAttribute('checked') ? '☒' : '☐')
  }
}
