import { ANNOTATION_FONT } from './annotations.js'
import { ObservedFont, SUBSET_PREFIX } from './fonts.js'
import { affineOf } from './geometry.js'
import type { PdfSheet } from './pdfjs.js'

/** Of fonts that do not say otherwise: thousand units make one font size. */
const GLYPH_SCALE = 0.001

/** What pdf.js calls every font that is drawn glyph by glyph and has no name of its own. */
const NAMELESS = 'Type3'

interface FontEntry {
  readonly font: ObservedFont
  readonly glyphScale: number
}

/** The fonts of a document under the names that pdf.js gives them; those that share a name are one font. */
export class FontBook {
  private readonly entries = new Map<string, FontEntry>()
  private readonly fonts = new Map<string, ObservedFont>()

  /** Asks the page for fonts that it has loaded. */
  entry(loadedName: string, sheet: PdfSheet): FontEntry {
    const known = this.entries.get(loadedName)
    if (known !== undefined) return known
    const details = detailsOf(loadedName, sheet)
    const name = details.name ?? ''
    const id = name === '' ? `font ${this.entries.size + 1}` : name.replace(SUBSET_PREFIX, '')
    const claimsFixedPitch = details.fallbackName === 'monospace'
    const font = this.fonts.get(id) ?? new ObservedFont({ name, id, claimsFixedPitch })
    const entry = { font, glyphScale: affineOf(details.fontMatrix)?.[0] ?? GLYPH_SCALE }
    this.fonts.set(id, font)
    this.entries.set(loadedName, entry)
    return entry
  }
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
