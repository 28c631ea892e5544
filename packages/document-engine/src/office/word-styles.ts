import { languageTag } from '../model/document.js'
import { FIXED_PITCH } from './fixed-pitch.js'
import { childElements, descendant, parseXml, type XmlElement } from './xml.js'

interface WordStyle {
  readonly name: string
  readonly basedOn: string
  readonly isDefault: boolean
  /** Undefined where it says nothing. */
  readonly isFixedPitch: boolean | undefined
  readonly numbering: Numbering | undefined
  readonly language: string
}

export interface Numbering {
  readonly id: string
  /** From 0. */
  readonly level: number
}

/** Most styles on the way to the first: chains of files are short, and hostile ones are circles. */
const LONGEST_CHAIN = 20

const CODE_STYLE =
  /^(?:code|source code|source text|code block|html preformatted|preformatted text|plain text|macro|macro text|verbatim)$/i
const TEXT_STYLE = /^(?:heading|title|subtitle|toc|list|header|footer|caption)\b/i

/** The styles of a Word document, by their ids. */
export class WordStyles {
  readonly language: string
  /** Whether ordinary text has a font of fixed pitch, so that the font says nothing. */
  private readonly isTypewritten: boolean
  private readonly styles = new Map<string, WordStyle>()

  constructor(bytes: Uint8Array | undefined) {
    const root = bytes && parseXml(bytes)
    for (const element of childElements(root, 'style')) {
      const style = readStyle(element)
      this.styles.set(valueOf(element, 'styleId') ?? '', style)
    }
    const defaults = descendant(root, 'docDefaults', 'rPrDefault', 'rPr')
    const normal = [...this.styles.values()].find(({ isDefault }) => isDefault)
    this.language = normal?.language || languageIn(defaults)
    this.isTypewritten = normal?.isFixedPitch ?? isFixedPitch(defaults) ?? false
  }

  /** Whether paragraphs of the style are code, by its name or its font. */
  isCode(id: string): boolean {
    return this.hasName(id, CODE_STYLE) || (this.isFixedPitch(id) && !this.isNamedForText(id))
  }

  /** Whether the style is that of a heading or a list, whatever its font. */
  isNamedForText(id: string): boolean {
    return this.hasName(id, TEXT_STYLE)
  }

  isFixedPitch(id: string): boolean {
    if (this.isTypewritten) return false
    return this.chain(id).find((style) => style.isFixedPitch !== undefined)?.isFixedPitch ?? false
  }

  /** Whether a font that a run names marks code. */
  marksCode(font: string): boolean {
    return !this.isTypewritten && FIXED_PITCH.test(font)
  }

  numberingOf(id: string): Numbering | undefined {
    return this.chain(id).find(({ numbering }) => numbering !== undefined)?.numbering
  }

  /** The list that the name of a style means, such as "List Bullet 2"; undefined for other styles. */
  listOf(id: string): { readonly isOrdered: boolean; readonly level: number } | undefined {
    for (const { name } of this.chain(id)) {
      const match = /^list (bullet|number)(?: ([2-9]))?$/i.exec(name)
      if (match !== null) return { isOrdered: /number/i.test(match[1] ?? ''), level: Number(match[2] ?? 1) - 1 }
    }
    return undefined
  }

  private hasName(id: string, pattern: RegExp): boolean {
    return this.chain(id).some(({ name }) => pattern.test(name))
  }

  private chain(id: string): WordStyle[] {
    const found: WordStyle[] = []
    for (let style = this.styles.get(id); style !== undefined; style = this.styles.get(style.basedOn)) {
      if (found.length >= LONGEST_CHAIN) break
      found.push(style)
    }
    return found
  }
}

function readStyle(element: XmlElement): WordStyle {
  const numbering = descendant(element, 'pPr', 'numPr')
  const id = valueIn(numbering, 'numId')
  const characters = descendant(element, 'rPr')
  return {
    name: valueIn(element, 'name') ?? '',
    basedOn: valueIn(element, 'basedOn') ?? '',
    isDefault: valueOf(element, 'type') === 'paragraph' && /^(?:1|true|on)$/.test(valueOf(element, 'default') ?? ''),
    isFixedPitch: isFixedPitch(characters),
    numbering: id === undefined ? undefined : { id, level: Number(valueIn(numbering, 'ilvl') ?? 0) },
    language: languageIn(characters),
  }
}

/** Undefined without a font. */
function isFixedPitch(properties: XmlElement | undefined): boolean | undefined {
  const fonts = descendant(properties, 'rFonts')
  const font = fonts && valueOf(fonts, 'ascii')
  return font === undefined ? undefined : FIXED_PITCH.test(font)
}

function languageIn(properties: XmlElement | undefined): string {
  return languageTag(valueIn(properties, 'lang') ?? '')
}

/** Value of the child of that name. */
function valueIn(element: XmlElement | undefined, name: string): string | undefined {
  const child = descendant(element, name)
  return child && valueOf(child, 'val')
}

/** Value of an attribute, whatever its prefix. */
export function valueOf(element: Pick<XmlElement, 'attributes'>, name: string): string | undefined {
  const { attributes } = element
  return attributes[`w:${name}`] ?? attributes[Object.keys(attributes).find((key) => key.endsWith(`:${name}`)) ?? name]
}

interface NumberedLevel {
  readonly start: number
  readonly isNumber: boolean
  /** Whether the bullet is a blank: the paragraph continues an item. */
  readonly isBlank: boolean
}

/** The lists of a Word document: which number each item has. */
export class WordNumbering {
  private readonly abstractOf = new Map<string, string>()
  private readonly levels = new Map<string, ReadonlyMap<number, NumberedLevel>>()
  /** Numbers to begin with, by the id of a list and its level; used once. */
  private readonly restarts = new Map<string, number>()
  /** Last number, by abstract list, then by level. */
  private readonly counts = new Map<string, Map<number, number>>()

  constructor(bytes: Uint8Array | undefined) {
    const root = bytes && parseXml(bytes)
    for (const abstract of childElements(root, 'abstractNum')) {
      const levels = childElements(abstract, 'lvl').map((level) => [levelOf(level), readLevel(level)] as const)
      this.levels.set(valueOf(abstract, 'abstractNumId') ?? '', new Map(levels))
    }
    for (const list of childElements(root, 'num')) this.readList(list)
  }

  has(id: string): boolean {
    return this.levels.has(this.abstractOf.get(id) ?? '')
  }

  /** The next item; undefined in unknown lists. Levels below begin anew. */
  next({
    id,
    level,
  }: Numbering): { readonly number: number; readonly isNumber: boolean; readonly isBlank: boolean } | undefined {
    const abstract = this.abstractOf.get(id) ?? ''
    const settings = this.levels.get(abstract)?.get(level)
    if (settings === undefined) return undefined
    const counts = this.counts.get(abstract) ?? new Map<number, number>()
    this.counts.set(abstract, counts)
    const restart = this.restarts.get(`${id}/${level}`)
    this.restarts.delete(`${id}/${level}`)
    const last = restart === undefined ? counts.get(level) : restart - 1
    const number = (last ?? settings.start - 1) + 1
    counts.set(level, number)
    for (const other of counts.keys()) if (other > level) counts.delete(other)
    return { number, isNumber: settings.isNumber, isBlank: settings.isBlank }
  }

  private readList(list: XmlElement): void {
    const id = valueOf(list, 'numId') ?? ''
    this.abstractOf.set(id, valueIn(list, 'abstractNumId') ?? '')
    for (const override of childElements(list, 'lvlOverride')) {
      const start = valueIn(override, 'startOverride')
      if (start !== undefined) this.restarts.set(`${id}/${levelOf(override)}`, Number(start) || 0)
    }
  }
}

function levelOf(element: XmlElement): number {
  return Number(valueOf(element, 'ilvl') ?? 0)
}

function readLevel(level: XmlElement): NumberedLevel {
  const format = valueIn(level, 'numFmt') ?? 'decimal'
  return {
    start: Number(valueIn(level, 'start') ?? 1) || 0,
    isNumber: format !== 'bullet' && format !== 'none',
    isBlank: format === 'bullet' && valueIn(level, 'lvlText')?.trim() === '',
  }
}
