import { ANNOTATION_FONT } from './annotations.js'
import { affineOf } from './geometry.js'
import type { PdfSheet } from './pdfjs.js'

/** Prefix in the name of a font that was embedded as a subset. */
const SUBSET_PREFIX = /^[A-Z]{6}\+/
const BOLD_NAME =
  /bold|black(?!l)|heavy|demi(?!lig)|medi(?!um)|^(?:cmb|cmbx|cmssbx|sfbx|sfrb|ecbx|ecrb|lmb)\w*\d|[-,]bd|-b$/i
const ITALIC_NAME =
  /ital|obli|slant|kursiv|^(?:cmti|cmsl|cmitt|cmsltt|cmssi|cmbxti|sfti|sfsl|ecti|ecsl)\w*\d|-it$|[-,](?:bd)?it\b|-ri$/i
const FIXED_NAME = /courier|mono|consol|typewriter|fixed|inconsolata|menlo|^(?:cmtt|cmsltt|cmitt|sftt|ectt|txtt|lmtt)/i

const NARROW_LETTERS = new Set('ijlftrI')
const MIN_LETTERS = 4
const CJK = /^[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}]/u

interface FontTraits {
  /** Name of the font without the prefix of its subset; constant throughout the document. */
  readonly name: string
  readonly isBold: boolean
  readonly isItalic: boolean
}

/** Declared properties of a font. The file may be wrong. */
interface FontClaims {
  /** PostScript name; '' when the file gives none. */
  readonly name: string
  /** Identifies a font without a name within this document. */
  readonly id: string
  readonly claimsFixedPitch: boolean
}

/** A font with its name and its observed glyphs, which are complete once the whole document is read. */
export class ObservedFont {
  readonly traits: FontTraits
  private readonly widthOfLetter = new Map<string, number>()
  private cjkGlyphs = 0
  private glyphs = 0
  private fixedPitch: boolean | undefined

  constructor(private readonly claims: FontClaims) {
    const name = claims.name.replace(SUBSET_PREFIX, '')
    this.traits = { name: name || claims.id, isBold: BOLD_NAME.test(name), isItalic: ITALIC_NAME.test(name) }
  }

  /** @param width in any unit, the same for all glyphs of the font */
  observe(glyph: string, width: number): void {
    this.glyphs += 1
    this.fixedPitch = undefined
    if (/^[A-Za-z]$/.test(glyph)) this.widthOfLetter.set(glyph, width)
    else if (CJK.test(glyph)) this.cjkGlyphs += 1
  }

  /**
   * Decided by letters of different shape and equal width; without such letters by the name and the file's flag, which fonts
   * of CJK text and of symbols have as well, although their text is no code.
   */
  get isFixedPitch(): boolean {
    this.fixedPitch ??= this.decidePitch()
    return this.fixedPitch
  }

  private decidePitch(): boolean {
    const letters = [...this.widthOfLetter]
    const hasBothShapes = new Set(letters.map(([letter]) => NARROW_LETTERS.has(letter))).size === 2
    if (letters.length >= MIN_LETTERS && hasBothShapes) return isSame(letters.map(([, width]) => width))
    if (FIXED_NAME.test(this.traits.name)) return this.cjkGlyphs * 2 <= this.glyphs
    return this.claims.claimsFixedPitch && letters.length > 0 && this.cjkGlyphs === 0
  }
}

function isSame(widths: readonly number[]): boolean {
  const widest = Math.max(...widths)
  return widest > 0 && widest - Math.min(...widths) <= 0.01 * widest
}

/** Default glyph space: a thousand units make one font size. */
const GLYPH_SCALE = 0.001

/** Name that pdf.js gives to every unnamed font that is drawn glyph by glyph (Type 3). */
const NAMELESS = 'Type3'

interface FontEntry {
  readonly font: ObservedFont
  readonly glyphScale: number
  /** Whether its glyphs have the names that TeX gives to those of its bitmap fonts. */
  isTexBitmap: boolean
}

/** The fonts of a document under the names that pdf.js gives them; those that share a name are one font. */
export class FontBook {
  private readonly entries = new Map<string, FontEntry>()
  private readonly fonts = new Map<string, ObservedFont>()

  /** Reads the font from the page, which must have loaded it. */
  entry(loadedName: string, sheet: PdfSheet): FontEntry {
    const known = this.entries.get(loadedName)
    if (known !== undefined) return known
    const details = detailsOf(loadedName, sheet)
    const name = details.name ?? ''
    const id = name === '' ? `font ${this.entries.size + 1}` : name.replace(SUBSET_PREFIX, '')
    const claimsFixedPitch = details.fallbackName === 'monospace'
    const font = this.fonts.get(id) ?? new ObservedFont({ name, id, claimsFixedPitch })
    const entry = { font, glyphScale: affineOf(details.fontMatrix)?.[0] ?? GLYPH_SCALE, isTexBitmap: false }
    this.fonts.set(id, font)
    this.entries.set(loadedName, entry)
    return entry
  }

  observe(loadedName: string, glyph: DrawnGlyph, sheet: PdfSheet): void {
    const entry = this.entry(loadedName, sheet)
    const { operatorListId: name, originalCharCode: code } = glyph
    if (name !== undefined) entry.isTexBitmap = typeof code === 'number' && name === `a${code}`
    entry.font.observe(glyph.unicode, glyph.width)
  }
}

/** What pdf.js says of a glyph that is drawn. */
interface DrawnGlyph {
  readonly unicode: string
  readonly width: number
  readonly originalCharCode?: unknown
  readonly operatorListId?: unknown
}

interface FontDetails {
  readonly name?: string | undefined
  readonly fallbackName?: string | undefined
  readonly fontMatrix?: unknown
}

function detailsOf(loadedName: string, sheet: PdfSheet): FontDetails {
  if (loadedName === ANNOTATION_FONT || !sheet.commonObjs.has(loadedName)) return {}
  const details: unknown = sheet.commonObjs.get(loadedName)
  if (typeof details !== 'object' || details === null) return {}
  const name = textAt(details, 'name')
  return {
    name: name === NAMELESS ? undefined : name,
    fallbackName: textAt(details, 'fallbackName'),
    fontMatrix: Reflect.get(details, 'fontMatrix'),
  }
}

function textAt(holder: object, key: string): string | undefined {
  const value: unknown = Reflect.get(holder, key)
  return typeof value === 'string' ? value : undefined
}
