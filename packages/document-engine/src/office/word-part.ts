import { equationTex } from './equation-tex.js'
import { alternativeText } from './office-package.js'
import { valueOf, type WordNumbering, type WordStyles } from './word-styles.js'
import { childElements, type elementCounter, scanXml, TreeCollector, type XmlElement } from './xml.js'

/** Unicode noncharacters around what mammoth passes through as text; texts of documents keep none of them. */
export const EQUATION = '\ufdd3'
export const DISPLAYED_EQUATION = '\ufdd4'
export const ITEM_NUMBER = '\ufdd5'
export const MARK_END = '\ufdd6'

/** Ids of styles of our own, for text that is code by its font. */
export const CODE_PARAGRAPH = 'EngineCodeParagraph'
export const TYPED_PARAGRAPH = 'EngineTypedParagraph'
export const CODE_RUN = 'EngineCodeRun'
/** Followed by `-` and the level: a further paragraph of an item. */
export const CONTINUED_PARAGRAPH = 'EngineContinued'
/** Followed by `-ul` or `-ol` and the level: an item of a list by the name of its style. */
export const LIST_PARAGRAPH = 'EngineList'

/** What a document holds that mammoth does not read, and how much of it cannot be written. */
export interface WordFindings {
  /** TeX, by the number in the mark. */
  readonly equations: string[]
  unreadEquations: number
  droppedPictures: number
  unreadObjects: number
}

/** Elements for appearance and page layout, half of a Word document. None holds text or is used by the style map. */
const LOOKS: ReadonlySet<string> = new Set(
  (
    'rFonts sz szCs bCs iCs lang color kern spacing position w noProof effect shd bdr fitText snapToGrid ' +
    'eastAsianLayout webHidden rtl cs em shadow outline ind jc tabs keepNext keepLines widowControl ' +
    'contextualSpacing pBdr outlineLvl autoSpaceDE autoSpaceDN adjustRightInd suppressAutoHyphens textAlignment ' +
    'cnfStyle divId tblW tblInd tblBorders tblLayout tblLook tblCellMar tblGrid tblOverlap tblpPr tcW tcBorders ' +
    'tcMar vAlign noWrap hideMark textDirection trHeight cantSplit sectPr proofErr lastRenderedPageBreak ' +
    'bookmarkStart bookmarkEnd rPrChange pPrChange tcPrChange trPrChange'
  ).split(' '),
)

interface OpenParagraph {
  style: string
  numbering: { id: string | undefined; level: number }
  /** Characters that are no blanks, and those of a font of fixed pitch. */
  characters: number
  codeCharacters: number
  /** Whether its mark, or a run of it, has a font of fixed pitch. */
  isTyped: boolean
  isInProperties: boolean
  run: { isCode: boolean; style: string } | undefined
}

interface OpenDrawing {
  description: string
  isPicture: boolean
  isDecoration: boolean
  boxes: string
}

export interface WordContext {
  readonly styles: WordStyles
  readonly numbering: WordNumbering
  readonly findings: WordFindings
  /** Called for each element that stays; throws when there were too many. */
  readonly countElement: ReturnType<typeof elementCounter>
}

/**
 * A part of a Word document as mammoth can read it: without elements for appearance, of which mammoth builds a tree, with marks
 * in place of equations, words in place of drawings, text boxes outside of them. Refuses what is too deep or too large.
 *
 * @throws EngineFault `broken`, `too_large`
 */
export function wordPart(bytes: Uint8Array, context: WordContext): string {
  const part = new WordPart(context)
  scanXml(bytes, part)
  return part.xml()
}

class WordPart {
  private readonly outputs: string[][] = [['<?xml version="1.0" encoding="UTF-8"?>']]
  private readonly paragraphs: OpenParagraph[] = []
  /** Open drawings; text boxes in them, and those of VML, which are ordinary content again. */
  private readonly drawings: (OpenDrawing | 'box' | 'vml')[] = []
  /** Whether the newer of two alternatives was taken, and the pictures dropped before it. */
  private readonly alternatives: { isTaken: boolean; dropped: number }[] = []
  private equation: TreeCollector | undefined
  private skippedDepth = 0
  private objectDepth = 0
  private isText = false
  private isBelowCode = false
  /** Prefix of the elements of Word, with its colon. */
  private prefix = ''

  constructor(private readonly context: WordContext) {}

  xml(): string {
    return this.outputs.flat().join('')
  }

  readonly open = (name: string, attributes: XmlElement['attributes'], prefixedName: string): void => {
    if (
      this.skippedDepth > 0 ||
      LOOKS.has(name) ||
      (name === 'Fallback' && this.alternatives.at(-1)?.isTaken === true)
    ) {
      this.skippedDepth += 1
      if (name === 'rFonts') this.readFont(attributes)
      return
    }
    this.context.countElement()
    if (this.equation !== undefined || name === 'oMath' || name === 'oMathPara') {
      this.equation ??= new TreeCollector()
      this.equation.open(name, attributes)
      return
    }
    if (this.prefix === '') this.prefix = prefixedName.slice(0, prefixedName.indexOf(':') + 1)
    if (this.openAlternative(name) || this.openDrawing(name, attributes)) return
    if (name === 'p') this.openParagraph()
    else if (name === 'object') this.objectDepth += 1
    else if (name === 'OLEObject') this.addObject(attributes.ProgID ?? '')
    else if (name === 'altChunk') this.context.findings.unreadObjects += 1
    else if (name === 'imagedata' && this.objectDepth === 0 && (attributes['o:title'] ?? '') === '')
      this.context.findings.droppedPictures += 1
    this.readProperty(name, valueOf({ attributes }, 'val') ?? '')
    if (name === 'rStyle' && this.paragraphs.at(-1)?.run !== undefined) {
      // Written at the end of the properties, when the font is known.
      this.skippedDepth = 1
      return
    }
    this.isText = name === 't'
    const author = name === 'comment' ? valueOf({ attributes }, 'author') : undefined
    // mammoth shows the initials only.
    const shown = author === undefined ? attributes : { ...attributes, [`${this.prefix}initials`]: author }
    this.write(`<${prefixedName}${attributeText(shown)}>`)
  }

  readonly text = (text: string): void => {
    if (this.skippedDepth > 0) return
    if (this.equation !== undefined) {
      this.equation.text(text)
      return
    }
    if (this.openedDrawing !== undefined) return
    const paragraph = this.paragraphs.at(-1)
    if (this.isText && paragraph !== undefined) {
      const characters = text.replaceAll(/\s/g, '').length
      paragraph.characters += characters
      if (paragraph.run?.isCode === true) paragraph.codeCharacters += characters
    }
    this.write(escapeXml(text))
  }

  readonly close = (name: string, prefixedName: string): void => {
    if (this.skippedDepth > 0) {
      this.skippedDepth -= 1
      return
    }
    if (this.equation !== undefined) {
      const tree = this.equation.close()
      if (tree === undefined) return
      this.equation = undefined
      this.writeEquation(tree)
      return
    }
    if (this.closeAlternative(name) || this.closeDrawing(name)) return
    if (name === 't') this.isText = false
    else if (name === 'object') this.objectDepth -= 1
    else this.closeProperties(name)
    this.write(`</${prefixedName}>`)
    if (name === 'p') this.closeParagraph()
  }

  private write(xml: string): void {
    this.outputs.at(-1)?.push(xml)
  }

  private taken(): string {
    return this.outputs.pop()?.join('') ?? ''
  }

  /** Of alternatives for newer and older programs, takes the newer if it is a drawing. */
  private openAlternative(name: string): boolean {
    if (name === 'AlternateContent') {
      this.alternatives.push({ isTaken: false, dropped: this.context.findings.droppedPictures })
    } else if (name === 'Choice') this.outputs.push([])
    else return name === 'Fallback'
    return true
  }

  private closeAlternative(name: string): boolean {
    if (name === 'AlternateContent') this.alternatives.pop()
    else if (name === 'Choice') {
      const xml = this.taken()
      const alternative = this.alternatives.at(-1)
      const { droppedPictures } = this.context.findings
      if (alternative === undefined) return true
      alternative.isTaken =
        this.openedDrawing !== undefined || xml.includes(`<${this.prefix}t`) || droppedPictures > alternative.dropped
      if (alternative.isTaken) this.write(xml)
    } else return name === 'Fallback'
    return true
  }

  /** Whether the element belongs to a drawing, of which only descriptions and text boxes are read. */
  private openDrawing(name: string, attributes: XmlElement['attributes']): boolean {
    if (name === 'drawing') {
      this.drawings.push({ description: '', isPicture: false, isDecoration: false, boxes: '' })
      return true
    }
    const drawing = this.openedDrawing
    if (drawing === undefined) {
      if (name === 'txbxContent') this.drawings.push('vml')
      return false
    }
    if (name === 'docPr') drawing.description = alternativeText(attributes.descr?.trim() || attributes.title)
    else if (name === 'blip') drawing.isPicture = true
    else if (name === 'decorative') drawing.isDecoration = /^(?:1|true)$/.test(attributes.val ?? '')
    else if (name === 'txbxContent') {
      this.drawings.push('box')
      this.outputs.push([`<${this.prefix}txbxContent>`])
    }
    return true
  }

  private get openedDrawing(): OpenDrawing | undefined {
    const last = this.drawings.at(-1)
    return typeof last === 'string' ? undefined : last
  }

  private closeDrawing(name: string): boolean {
    if (name === 'txbxContent' && this.drawings.at(-1) === 'vml') this.drawings.pop()
    if (name === 'txbxContent' && this.drawings.at(-1) === 'box') {
      this.drawings.pop()
      const box = `${this.taken()}</${this.prefix}txbxContent>`
      if (this.openedDrawing !== undefined) this.openedDrawing.boxes += box
      return true
    }
    const drawing = this.openedDrawing
    if (drawing === undefined) return false
    if (name !== 'drawing') return true
    this.drawings.pop()
    const { description, isPicture, isDecoration, boxes } = drawing
    const { prefix } = this
    if (description !== '' && !isDecoration) this.write(`<${prefix}t>${escapeXml(description)}</${prefix}t>`)
    if (description === '' && isPicture && !isDecoration) this.context.findings.droppedPictures += 1
    const vml = 'xmlns:v="urn:schemas-microsoft-com:vml"'
    if (boxes !== '') this.write(`<${prefix}pict><v:textbox ${vml}>${boxes}</v:textbox></${prefix}pict>`)
    return true
  }

  private openParagraph(): void {
    this.outputs.push([])
    this.paragraphs.push({
      style: '',
      numbering: { id: undefined, level: 0 },
      characters: 0,
      codeCharacters: 0,
      isTyped: false,
      isInProperties: false,
      run: undefined,
    })
  }

  private readProperty(name: string, value: string): void {
    const paragraph = this.paragraphs.at(-1)
    if (paragraph === undefined) return
    const { styles } = this.context
    if (name === 'pPr') paragraph.isInProperties = true
    else if (name === 'pStyle') paragraph.style = value
    else if (name === 'numId' && paragraph.isInProperties) paragraph.numbering.id = value
    else if (name === 'ilvl') paragraph.numbering.level = Number(value) || 0
    else if (name === 'r') paragraph.run = { isCode: styles.isFixedPitch(paragraph.style), style: '' }
    else if (name === 'rStyle' && paragraph.run !== undefined) {
      paragraph.run.style = value
      paragraph.run.isCode ||= styles.isFixedPitch(value)
    }
  }

  private readFont(attributes: XmlElement['attributes']): void {
    const paragraph = this.paragraphs.at(-1)
    const font = valueOf({ attributes }, 'ascii')
    if (font === undefined || paragraph === undefined) return
    const isCode = this.context.styles.marksCode(font)
    paragraph.isTyped ||= isCode
    if (paragraph.run !== undefined) paragraph.run.isCode = isCode
  }

  private closeProperties(name: string): void {
    const paragraph = this.paragraphs.at(-1)
    if (paragraph === undefined) return
    if (name === 'pPr') {
      paragraph.isInProperties = false
      this.closeParagraphProperties(paragraph)
    } else if (name === 'rPr' && paragraph.run !== undefined && !paragraph.isInProperties) {
      const { isCode, style } = paragraph.run
      const id = isCode && !this.context.styles.isFixedPitch(paragraph.style) ? CODE_RUN : style
      if (id !== '')
        this.write(`<${this.prefix}rStyle ${this.prefix}val="${escapeXml(id).replaceAll('"', '&quot;')}"/>`)
    } else if (name === 'r') paragraph.run = undefined
  }

  /** Lists that only the style of the paragraph names. */
  private closeParagraphProperties(paragraph: OpenParagraph): void {
    const { prefix } = this
    const { styles, numbering } = this.context
    const inherited = paragraph.numbering.id === undefined ? styles.numberingOf(paragraph.style) : undefined
    if (inherited === undefined || !numbering.has(inherited.id)) return
    paragraph.numbering = { id: inherited.id, level: inherited.level }
    this.write(
      `<${prefix}numPr><${prefix}ilvl ${prefix}val="${inherited.level}"/><${prefix}numId ${prefix}val="${escapeXml(inherited.id)}"/></${prefix}numPr>`,
    )
  }

  private closeParagraph(): void {
    const paragraph = this.paragraphs.pop()
    const xml = this.taken()
    const start = xml.indexOf('>') + 1
    if (paragraph === undefined) return
    this.write(xml.slice(0, start))
    this.write(this.paragraphStart(paragraph))
    this.write(xml.slice(start))
  }

  /** What is put in front of the content of a paragraph; of two lists of properties mammoth reads the first. */
  private paragraphStart({ style, numbering, characters, codeCharacters, isTyped }: OpenParagraph): string {
    const { prefix } = this
    const { styles, numbering: lists } = this.context
    const isListed = numbering.id !== undefined && numbering.id !== '0'
    const item = isListed ? lists.next({ id: numbering.id ?? '', level: numbering.level }) : undefined
    if (item?.isBlank === true) return this.styleProperty(`${CONTINUED_PARAGRAPH}-${numbering.level}`)
    const number = item === undefined || !item.isNumber ? '' : this.mark(ITEM_NUMBER, item.number)
    const named = numbering.id === '0' || numbering.level > 0 ? undefined : styles.listOf(style)
    if (named !== undefined) {
      const isOrdered = item?.isNumber ?? named.isOrdered
      return this.styleProperty(`${LIST_PARAGRAPH}-${isOrdered ? 'ol' : 'ul'}-${named.level}`) + number
    }
    // A blank line in this font belongs to the code above it.
    const isFixedPitch = characters > 0 ? codeCharacters === characters : isTyped && this.isBelowCode
    this.isBelowCode = !isListed && (styles.isCode(style) || (isFixedPitch && !styles.isNamedForText(style)))
    if (!this.isBelowCode) return number
    const properties = this.styleProperty(styles.isCode(style) ? CODE_PARAGRAPH : TYPED_PARAGRAPH)
    // An empty line of code: mammoth leaves out paragraphs without text.
    return characters === 0 ? `${properties}<${prefix}r><${prefix}t>\u200b</${prefix}t></${prefix}r>` : properties
  }

  private styleProperty(id: string): string {
    const { prefix } = this
    return `<${prefix}pPr><${prefix}pStyle ${prefix}val="${id}"/></${prefix}pPr>`
  }

  private writeEquation(tree: XmlElement): void {
    const isDisplayed = tree.name === 'oMathPara'
    const { findings } = this.context
    for (const equation of isDisplayed ? childElements(tree, 'oMath') : [tree]) {
      const { tex, isWhole } = equationTex(equation)
      if (!isWhole) findings.unreadEquations += 1
      if (tex.trim() === '') continue
      findings.equations.push(tex)
      const paragraph = this.paragraphs.at(-1)
      if (paragraph !== undefined) paragraph.characters += 1
      this.write(this.mark(isDisplayed ? DISPLAYED_EQUATION : EQUATION, findings.equations.length - 1))
    }
  }

  private mark(kind: string, number: number): string {
    const { prefix } = this
    return `<${prefix}r><${prefix}t>${kind}${number}${MARK_END}</${prefix}t></${prefix}r>`
  }

  private addObject(program: string): void {
    if (/^equation/i.test(program)) this.context.findings.unreadEquations += 1
    else this.context.findings.unreadObjects += 1
  }
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
