import { readTree } from '@multi-model-gateway/document-engine/html/html-parser.js'
import { pageTraits, type PageTraits } from '@multi-model-gateway/document-engine/html/page-traits.js'
import { textBlocks } from '@multi-model-gateway/document-engine/html/text-blocks.js'
import type { EngineOutput } from '@multi-model-gateway/document-engine/model/document.js'
import { readDocx } from '@multi-model-gateway/document-engine/office/docx.js'
import { strToU8, type Zippable, zipSync } from 'fflate'

/** What is known of a page before its blocks are judged. */
export function traitsOf(html: string): PageTraits {
  const tree = readTree(html)
  return pageTraits(tree, textBlocks(tree.body))
}

/** The texts of the blocks that are marked. */
export const markedTexts = ({ page }: PageTraits, isMarked: readonly boolean[]): string[] =>
  page.blocks.filter((_, index) => isMarked[index] === true).map(({ text }) => text)

const LIMITS = { pages: 500, decodedBytes: 5_000_000 }

/** Has the engine read a Word document that may unpack to 5 MB. */
export const readWord = (bytes: Uint8Array): Promise<EngineOutput> =>
  readDocx({ bytes, contentType: '', name: 'x.docx', baseUrl: '' }, LIMITS)

const OFFICE = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'
const PACKAGE = 'http://schemas.openxmlformats.org/package/2006/relationships'
/** Declares the prefix of a Word document. */
export const WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'

export interface Relation {
  readonly id: string
  /** Last segment of its URI. */
  readonly type: string
  readonly target: string
  readonly isExternal?: boolean
}

export type Parts = Readonly<Record<string, string | Uint8Array>>

/** A ZIP archive of these parts. */
export function zipOf(parts: Parts): Uint8Array {
  const zippable: Zippable = {}
  for (const [name, content] of Object.entries(parts)) {
    zippable[name] = typeof content === 'string' ? strToU8(content) : content
  }
  return zipSync(zippable)
}

export function relations(entries: readonly Relation[]): string {
  const rows = entries.map(
    ({ id, type, target, isExternal }) =>
      `<Relationship Id="${id}" Type="${OFFICE}/${type}" Target="${target}"${isExternal ? ' TargetMode="External"' : ''}/>`,
  )
  return `<?xml version="1.0"?><Relationships xmlns="${PACKAGE}">${rows.join('')}</Relationships>`
}

/** An office file whose main part is `main`. */
export function officeFile(main: string, parts: Parts): Uint8Array {
  return zipOf({
    '[Content_Types].xml': '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
    '_rels/.rels': relations([{ id: 'rId1', type: 'officeDocument', target: main }]),
    ...parts,
  })
}

/** A Word document with this content of its `w:body`. */
export function wordFile(body: string, parts: Parts = {}): Uint8Array {
  return officeFile('word/document.xml', {
    'word/document.xml': `<w:document ${WORD}><w:body>${body}</w:body></w:document>`,
    ...parts,
  })
}

export function wordParagraph(text: string): string {
  return `<w:p><w:r><w:t>${text}</w:t></w:r></w:p>`
}

export interface SheetPart {
  readonly name: string
  /** Content of its `worksheet` element. */
  readonly content: string
  readonly state?: 'hidden' | 'veryHidden'
  readonly relations?: readonly Relation[]
}

export interface WorkbookParts {
  /** `si` elements. */
  readonly sharedStrings?: string
  /** Content of the `styleSheet` element. */
  readonly styles?: string
  /** Attributes of `workbookPr`. */
  readonly properties?: string
}

export function workbookFile(sheets: readonly SheetPart[], workbook: WorkbookParts = {}, more: Parts = {}): Uint8Array {
  const parts: Record<string, string | Uint8Array> = {}
  sheets.forEach((sheet, index) => {
    parts[`xl/worksheets/sheet${index + 1}.xml`] = `<worksheet xmlns:r="${OFFICE}">${sheet.content}</worksheet>`
    if (sheet.relations) parts[`xl/worksheets/_rels/sheet${index + 1}.xml.rels`] = relations(sheet.relations)
  })
  const list = sheets.map(
    ({ name, state = 'visible' }, index) => `<sheet name="${name}" state="${state}" r:id="rId${index + 1}"/>`,
  )
  return officeFile('xl/workbook.xml', {
    'xl/workbook.xml': `<workbook xmlns:r="${OFFICE}"><workbookPr ${workbook.properties ?? ''}/><sheets>${list.join('')}</sheets></workbook>`,
    'xl/_rels/workbook.xml.rels': relations([
      ...sheets.map((_, index) => ({
        id: `rId${index + 1}`,
        type: 'worksheet',
        target: `worksheets/sheet${index + 1}.xml`,
      })),
      { id: 'rIdStrings', type: 'sharedStrings', target: 'sharedStrings.xml' },
      { id: 'rIdStyles', type: 'styles', target: '/xl/styles.xml' },
    ]),
    'xl/sharedStrings.xml': `<sst>${workbook.sharedStrings ?? ''}</sst>`,
    'xl/styles.xml': `<styleSheet>${workbook.styles ?? ''}</styleSheet>`,
    ...parts,
    ...more,
  })
}

export interface SlidePart {
  /** Content of its `p:spTree`. */
  readonly shapes: string
  readonly isHidden?: boolean
  readonly relations?: readonly Relation[]
}

/** Slides in reverse order of their part names, so that only the list of slides tells the order of the show. */
export function presentationFile(slides: readonly SlidePart[], more: Parts = {}): Uint8Array {
  const parts: Record<string, string | Uint8Array> = {}
  const number = (index: number): number => slides.length - index
  slides.forEach(({ shapes, isHidden = false, relations: own = [] }, index) => {
    const name = `slide${number(index)}.xml`
    parts[`ppt/slides/${name}`] =
      `<p:sld ${isHidden ? 'show="0"' : ''} xmlns:r="${OFFICE}"><p:cSld><p:spTree>${shapes}</p:spTree></p:cSld></p:sld>`
    parts[`ppt/slides/_rels/${name}.rels`] = relations(own)
  })
  const list = slides.map((_, index) => `<p:sldId id="${256 + index}" r:id="rId${index + 1}"/>`)
  return officeFile('ppt/presentation.xml', {
    'ppt/presentation.xml': `<p:presentation xmlns:r="${OFFICE}"><p:sldIdLst>${list.join('')}</p:sldIdLst></p:presentation>`,
    'ppt/_rels/presentation.xml.rels': relations(
      slides.map((_, index) => ({ id: `rId${index + 1}`, type: 'slide', target: `slides/slide${number(index)}.xml` })),
    ),
    ...parts,
    ...more,
  })
}

/** A shape; a placeholder of a type where one is given (`''`: of any content), a text box otherwise. */
export function slideShape(paragraphs: string, placeholder?: string): string {
  const mark = placeholder === undefined ? '' : `<p:ph type="${placeholder}" idx="1"/>`
  return `<p:sp><p:nvSpPr><p:cNvPr id="2" name="x"/><p:nvPr>${mark}</p:nvPr></p:nvSpPr><p:txBody>${paragraphs}</p:txBody></p:sp>`
}

export function slideParagraph(text: string, properties = ''): string {
  return `<a:p>${properties}<a:r><a:t>${text}</a:t></a:r></a:p>`
}

export function coreProperties(content: string): string {
  return `<cp:coreProperties xmlns:cp="c" xmlns:dc="d">${content}</cp:coreProperties>`
}
