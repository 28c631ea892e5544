import { zipSync } from 'fflate'
import mammoth from 'mammoth'
import { noteLabel, noteReference, restoreFootnotes } from '../markdown/footnote-marks.js'
import { htmlToMarkdown } from '../markdown/html-to-markdown.js'
import {
  EngineFault,
  type EngineInput,
  type EngineLimits,
  type EngineOutput,
  type EngineWarning,
  faultBehind,
} from '../model/document.js'
import {
  alternativeText,
  coreMetadata,
  lacking,
  mainPart,
  OfficePackage,
  relationshipsOf,
  shortLine,
} from './office-package.js'
import { runningText } from './word-running-text.js'
import {
  markHeaders,
  markTypedBoxes,
  type OfficeDocument,
  type OfficeElement,
  parseOfficeHtml,
  placeMarks,
  replaceCheckboxes,
  replaceTyped,
} from './word-html.js'
import {
  CODE_PARAGRAPH,
  CODE_RUN,
  CONTINUED_PARAGRAPH,
  LIST_PARAGRAPH,
  TYPED_PARAGRAPH,
  type WordFindings,
  wordPart,
} from './word-part.js'
import { WordNumbering, WordStyles } from './word-styles.js'
import { elementCounter } from './xml.js'

/**
 * Marks the references to notes and comments, and these themselves, in HTML as mammoth makes it: `<sup><a
 * href="#footnote-7">[1]</a></sup>` in the text, and at the end a list of notes, in the order of their references; comments in
 * a list of definitions behind it. Comments are numbered behind the notes.
 */
function markNotes(document: OfficeDocument): void {
  const notes = [...document.querySelectorAll('li[id^="footnote-"], li[id^="endnote-"]')]
  for (const reference of document.querySelectorAll('a[id^="footnote-ref-"], a[id^="endnote-ref-"]')) {
    markReference(reference, /\d+/.exec(reference.textContent)?.[0] ?? '')
  }
  notes.forEach((note, index) => {
    note.parentElement?.before(noteParagraph(document, note, noteLabel(index + 1)))
  })
  notes[0]?.parentElement?.remove()
  markComments(document, notes.length)
}

function markReference(reference: OfficeElement, number: string): void {
  const parent = reference.parentElement
  const isRaised = parent?.localName === 'sup' && parent.children.length === 1
  const marked = isRaised ? parent : reference
  marked.replaceWith(noteReference(number))
}

function markComments(document: OfficeDocument, notes: number): void {
  const numbers = new Map<string, number>()
  const comments = [...document.querySelectorAll('dt[id^="comment-"]')]
  comments.forEach((term, index) => {
    numbers.set(term.getAttribute('id') ?? '', notes + index + 1)
  })
  for (const reference of document.querySelectorAll('a[id^="comment-ref-"]')) {
    const number = numbers.get((reference.getAttribute('href') ?? '').slice(1))
    if (number !== undefined) markReference(reference, String(number))
  }
  comments.forEach((term, index) => {
    const author = /\[(.*?)\d*\]$/.exec(term.textContent)?.[1] ?? ''
    const text = term.nextElementSibling
    const label = noteLabel(notes + index + 1)
    if (text !== null) term.parentElement?.before(noteParagraph(document, text, label, author))
  })
  comments[0]?.parentElement?.remove()
}

/** Joins the content of a note into one paragraph: in GFM further ones would have to be indented. */
function noteParagraph(document: OfficeDocument, note: OfficeElement, label: string, author = ''): OfficeElement {
  for (const back of note.querySelectorAll(
    'a[href^="#footnote-ref-"], a[href^="#endnote-ref-"], a[href^="#comment-ref-"]',
  ))
    back.remove()
  const paragraph = document.createElement('p')
  paragraph.append(label)
  if (author !== '') {
    const name = document.createElement('strong')
    name.append(`${author}:`)
    paragraph.append(name, ' ')
  }
  for (const child of [...note.childNodes]) {
    for (const part of child.localName === 'p' ? [...child.childNodes] : [child]) paragraph.append(part)
    paragraph.append(' ')
  }
  return paragraph
}

/** Most elements of all parts without appearance: mammoth needs about two kilobytes for each. */
const MOST_ELEMENTS = 250_000
/** Parts with text or with styles, besides the main part. */
const PARTS_OF_TEXT: ReadonlySet<string> = new Set(['styles', 'numbering', 'footnotes', 'endnotes', 'comments'])

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
  `p.${CODE_PARAGRAPH} => pre:separator('\\n')`,
  `p.${TYPED_PARAGRAPH} => pre.typed:separator('\\n')`,
  `r.${CODE_RUN} => code`,
  ...['ul', 'ol'].flatMap((list) =>
    Array.from(
      { length: 9 },
      (_, level) => `p.${LIST_PARAGRAPH}-${list}-${level} => ${'ul|ol > li > '.repeat(level)}${list} > li:fresh`,
    ),
  ),
  ...Array.from(
    { length: 9 },
    (_, level) => `p.${CONTINUED_PARAGRAPH}-${level} => ${'ul|ol > li > '.repeat(level + 1)}p:fresh`,
  ),
  'comment-reference => sup',
  ...['Code', 'HTML Code', 'Verbatim Char', 'Source Text'].map((name) => `r[style-name='${name}'] => code`),
  "p[style-name='TOC Heading'] => !",
  ...Array.from({ length: 9 }, (_, index) => `p[style-name='toc ${index + 1}'] => !`),
]

/**
 * Reads a Word document. Pictures are replaced by their alternative text; headers and footers follow the text once, behind a
 * rule; comments are notes.
 *
 * @throws EngineFault `broken`, `too_large`, `encrypted`
 */
export async function readDocx(input: EngineInput, limits: EngineLimits): Promise<EngineOutput> {
  const pack = new OfficePackage(input.bytes, limits)
  const main = mainPart(pack) ?? 'word/document.xml'
  const findings: WordFindings = { equations: [], unreadEquations: 0, droppedPictures: 0, unreadObjects: 0 }
  const { archive, language } = checkedParts(pack, main, findings)
  const document = parseOfficeHtml(await convertedHtml(archive))
  const title = titleAtTop(document)
  replacePictures(document)
  replaceTyped(document)
  replaceCheckboxes(document)
  markHeaders(document)
  markNotes(document)
  placeMarks(document, findings.equations)
  markTypedBoxes(document)
  addRunningText(document, runningText(pack, main))
  const markdown = restoreFootnotes(htmlToMarkdown(document.body, { baseUrl: '' }))
  const metadata = coreMetadata(pack)
  return {
    kind: 'docx',
    metadata: {
      ...metadata,
      title: metadata.title || title,
      language: metadata.language || language,
      warnings: warningsOf(findings),
    },
    html: '',
    markdown,
    pages: 1,
  }
}

function warningsOf({ unreadEquations, droppedPictures, unreadObjects }: WordFindings): EngineWarning[] {
  return [
    ...lacking('pictures_dropped', droppedPictures, 'picture has no description', 'pictures have no description'),
    ...lacking(
      'equations_unread',
      unreadEquations,
      'equation is not read as a whole',
      'equations are not read as a whole',
    ),
    ...lacking('attachments_unread', unreadObjects, 'embedded object is not read', 'embedded objects are not read'),
  ]
}

/** Headers and footers behind the text, as far as it does not say the same. */
function addRunningText(document: OfficeDocument, lines: readonly string[]): void {
  const said = new Set(document.body.children.map(({ textContent }) => textContent.trim()))
  const others = lines.filter((line) => !said.has(line))
  if (others.length === 0 || said.size === 0) return
  document.body.append(document.createElement('hr'))
  for (const line of others) {
    const paragraph = document.createElement('p')
    paragraph.append(line)
    document.body.append(paragraph)
  }
}

/** Title from the first heading: few documents have one in their properties. */
function titleAtTop(document: OfficeDocument): string {
  const first = document.body.children[0]
  return first?.localName === 'h1' ? shortLine(first.textContent) : ''
}

/** A package with only the parts that mammoth reads, each inflated and checked before. */
function checkedParts(
  pack: OfficePackage,
  main: string,
  findings: WordFindings,
): { archive: Buffer; language: string } {
  if (pack.pathOf(main) === undefined) throw new EngineFault('broken', NO_WORD)
  const related = [...relationshipsOf(pack, main).values()].filter(({ type }) => PARTS_OF_TEXT.has(type))
  const texts = [main, ...related.map(({ target }) => target)]
  const contents = new Map<string, Uint8Array>()
  for (const name of ['[Content_Types].xml', '_rels/.rels', ...texts.flatMap((text) => [text, relationsPart(text)])]) {
    const path = pack.pathOf(name)
    const bytes = path === undefined || contents.has(path) ? undefined : pack.read(name)
    if (path !== undefined && bytes !== undefined) contents.set(path, bytes)
  }
  const contentOf = (type: string): Uint8Array | undefined =>
    contents.get(pack.pathOf(related.find((one) => one.type === type)?.target ?? '') ?? '')
  const styles = new WordStyles(contentOf('styles'))
  const context = {
    styles,
    numbering: new WordNumbering(contentOf('numbering')),
    findings,
    countElement: elementCounter(MOST_ELEMENTS),
  }
  const parts = [...contents].map(([path, bytes]) => [path, Buffer.from(wordPart(bytes, context))] as const)
  const zip = zipSync(Object.fromEntries(parts), { level: 0 })
  return { archive: Buffer.from(zip.buffer, zip.byteOffset, zip.byteLength), language: styles.language }
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
