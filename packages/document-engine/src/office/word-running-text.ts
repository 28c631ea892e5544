import { collapseSpaces } from '../markdown/escape-markdown.js'
import { type OfficePackage, relationshipsOf } from './office-package.js'
import { valueOf } from './word-styles.js'
import { scanXml, type XmlElement, type XmlHandlers } from './xml.js'

/** Most lines: a document has a few headers and footers for each section. */
const MOST_LINES = 100
/** Fields whose text is another on each page. */
const PAGE_FIELD = /^\s*(?:PAGE|NUMPAGES|SECTIONPAGES|PAGEREF|STYLEREF|SECTION)\b/i

/** The lines of all headers, then those of all footers of a Word document, each once, without numbers of pages. */
export function runningText(pack: OfficePackage, mainPart: string): string[] {
  const related = [...relationshipsOf(pack, mainPart).values()]
  const lines = new Set<string>()
  for (const type of ['header', 'footer'])
    for (const { target } of related.filter((one) => one.type === type)) {
      const bytes = pack.read(target)
      if (bytes === undefined) continue
      const scan = new RunningTextScan()
      scanXml(bytes, scan)
      for (const line of scan.lines) if (lines.size < MOST_LINES) lines.add(line)
    }
  return [...lines]
}

/** Reads paragraphs as pieces between tabs; pieces with the number of a page are left out. */
class RunningTextScan implements XmlHandlers {
  readonly lines: string[] = []
  private piece = ''
  private pieces: string[] = []
  private isPageNumber = false
  private isText = false
  private isInstruction = false
  private readonly fields: { instruction: string }[] = []
  private fallbackDepth = 0

  readonly open = (name: string, attributes: XmlElement['attributes']): void => {
    if (name === 'Fallback' || this.fallbackDepth > 0) {
      this.fallbackDepth += 1
      return
    }
    if (name === 'p') this.endLine()
    else if (name === 'tab' || name === 'ptab' || name === 'br') this.endPiece()
    else if (name === 't') this.isText = true
    else if (name === 'instrText') this.isInstruction = true
    else if (name === 'fldSimple') this.isPageNumber ||= PAGE_FIELD.test(valueOf({ attributes }, 'instr') ?? '')
    else if (name === 'fldChar') this.readField(valueOf({ attributes }, 'fldCharType') ?? '')
  }

  readonly text = (text: string): void => {
    if (this.fallbackDepth > 0) return
    const field = this.fields.at(-1)
    if (this.isInstruction && field !== undefined) field.instruction += text
    else if (this.isText) this.piece += text
  }

  readonly close = (name: string): void => {
    if (this.fallbackDepth > 0) this.fallbackDepth -= 1
    else if (name === 't') this.isText = false
    else if (name === 'instrText') this.isInstruction = false
    else if (name === 'p') this.endLine()
  }

  private readField(type: string): void {
    if (type === 'begin') this.fields.push({ instruction: '' })
    else if (type === 'end') {
      const field = this.fields.pop()
      this.isPageNumber ||= PAGE_FIELD.test(field?.instruction ?? '')
    }
  }

  private endPiece(): void {
    const text = collapseSpaces(this.piece).trim()
    if (text !== '' && !this.isPageNumber) this.pieces.push(text)
    this.piece = ''
    this.isPageNumber = false
  }

  private endLine(): void {
    this.endPiece()
    if (this.pieces.length > 0) this.lines.push(this.pieces.join(' '))
    this.pieces = []
  }
}
