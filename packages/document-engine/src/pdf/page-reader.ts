import { setImmediate as nextTurn } from 'node:timers/promises'
import { annotationTexts, linkAreas } from './annotations.js'
import { type PageMarks, pageMarks } from './content-stream.js'
import { withDrawnBullets } from './drawn-bullets.js'
import { joinedLines, turnedLine } from './drawn-lines.js'
import { FontBook, type ObservedFont } from './fonts.js'
import { type Affine, affineOf, compose, type PlacedText } from './geometry.js'
import { ARTIFACT, type PdfPage, type StructureNode, type TextRun } from './layout/layout-model.js'
import type { PdfDocument, Pdfjs, PdfSheet } from './pdfjs.js'
import { describedPictures, isPictured, notablePictures, type Picture } from './pictures.js'
import { structureOf } from './structure-tree.js'
import { texText } from './tex-characters.js'
import { CharacterTally, joinedAtAccents, shownText, withoutCopies, withSoftHyphens } from './text-cleanup.js'
import { placedText, type TextItem, turnedForReading } from './text-placement.js'
import type { PageGaps } from './warnings.js'

/**
 * Most CPU time for the drawings of one document; pages after that are read without lines, so that the document gets a
 * result. CPU time, because a busy machine must give the same result.
 */
const MAX_DRAWING_CPU_MS = 6000
/** The same for tags: pdf.js takes the square of a table's rows on each of its pages. */
const MAX_STRUCTURE_CPU_MS = 3000
const NO_MARKS: PageMarks = { lines: [], stretches: [], softHyphens: [], pictures: [], smallShapes: [] }

type Layers = Awaited<ReturnType<PdfDocument['getOptionalContentConfig']>>

/** A page whose fonts are not final: glyphs on later pages may change what is known of them. */
export interface UnsettledPage {
  readonly page: Omit<PdfPage, 'runs'>
  readonly texts: readonly { readonly placed: PlacedText; readonly font: ObservedFont }[]
  readonly gaps: PageGaps
}

/** The page for the layout, once the whole document was read. */
export function settledPage({ page, texts }: UnsettledPage): PdfPage {
  return { ...page, runs: texts.map(({ placed, font }) => textRun(placed, font)) }
}

function textRun({ text, x, y, length, fontSize, isDrawnBold, contentId }: PlacedText, font: ObservedFont): TextRun {
  const { name, isBold, isItalic } = font.traits
  const place = { x, y, width: length, fontSize, contentId }
  return { text, ...place, font: name, isBold: isBold || isDrawnBold, isItalic, isFixedPitch: font.isFixedPitch }
}

/** What pdf.js really gives where marked content begins and ends; its types lack the half of it. */
interface MarkedContent {
  readonly type: string
  readonly id?: string | null
  readonly tag?: string | null
}

/** Knows which piece of marked content is open while the items of a page pass. */
class OpenContent {
  private readonly open: (string | undefined)[] = []

  get id(): string | undefined {
    return this.open.at(-1)
  }

  pass(item: MarkedContent): void {
    if (item.type === 'endMarkedContent') this.open.pop()
    else this.open.push(item.id ?? (item.tag === 'Artifact' ? ARTIFACT : this.id))
  }
}

/** Reads the pages of one document, one after the other. */
export class PageReader {
  private readonly fonts = new FontBook()
  private drawingCpuMs = 0
  private structureCpuMs = 0
  /** Whether the document has a structure tree, as far as its pages so far say. */
  private isTagged = true
  private undrawnPage: number | undefined

  constructor(
    private readonly pdfjs: Pdfjs,
    private readonly layers: Layers | undefined,
  ) {}

  /** First page without lines because of the limit; undefined when all were read. */
  get firstUndrawnPage(): number | undefined {
    return this.undrawnPage
  }

  /** Rejects when the text of the page cannot be read; unreadable lines, links and forms are left out. */
  async read(sheet: PdfSheet): Promise<UnsettledPage> {
    const viewport = sheet.getViewport({ scale: 1 })
    const matrix = affineOf(viewport.transform)
    if (matrix === undefined) throw new Error('The page has no size.')
    const structure = await this.structure(sheet)
    // Before the text, because pdf.js provides the fonts with the drawings.
    const drawn = await this.marks(sheet, matrix)
    const marks = drawn ?? NO_MARKS
    const { placed, isUnreadable } = await this.placedTexts(sheet, matrix, structure !== undefined)
    const annotations: unknown[] = await sheet.getAnnotations().catch(() => [])
    const shown = withSoftHyphens(shownText(placed, marks.stretches), marks.softHyphens)
    // Tags say of themselves what an item is.
    const marked = structure === undefined ? withDrawnBullets(shown, marks.smallShapes) : shown
    const texts = [...marked, ...annotationTexts(annotations, matrix)]
    const turned = turnedForReading(texts, viewport.width, viewport.height)
    const { width, height } = turned
    const rules = joinedLines(
      marks.lines.map((line) => turnedLine(line, turned.matrix)),
      turned,
    )
    const links = linkAreas(annotations, compose(turned.matrix, matrix))
    const settled = withoutCopies(turned.texts)
    return {
      page: { number: sheet.pageNumber, width, height, rules, links, structure },
      texts: settled.map((placed) => ({ placed, font: this.fonts.entry(placed.fontName, sheet).font })),
      gaps: {
        isPicture: settled.length === 0 && isPictured(marks.pictures, viewport),
        isUnreadable,
        isUndrawn: drawn === undefined,
        pictures: droppedPictures(marks.pictures, structure, viewport),
      },
    }
  }

  /** Undefined without tags. */
  private async structure(sheet: PdfSheet): Promise<StructureNode | undefined> {
    if (!this.isTagged || this.structureCpuMs > MAX_STRUCTURE_CPU_MS) return undefined
    const startedAtMs = cpuMs()
    try {
      const tree: unknown = await sheet.getStructTree()
      this.isTagged = tree !== null
      return structureOf(tree)
    } catch {
      return undefined
    } finally {
      this.structureCpuMs += cpuMs() - startedAtMs
    }
  }

  private async placedTexts(
    sheet: PdfSheet,
    matrix: Affine,
    isTagged: boolean,
  ): Promise<{ placed: PlacedText[]; isUnreadable: boolean }> {
    // Presentation forms are resolved in logical order; pdf.js would do it in the order of the page.
    const content = await sheet.getTextContent({ disableNormalization: true, includeMarkedContent: isTagged })
    const isVertical = (item: TextItem) => content.styles[item.fontName]?.vertical === true
    const marked = new OpenContent()
    const tally = new CharacterTally()
    const placed: PlacedText[] = []
    for (const item of content.items) {
      if (!('str' in item)) marked.pass(item)
      else {
        const known = this.fonts.entry(item.fontName, sheet).isTexBitmap ? { ...item, str: texText(item.str) } : item
        tally.add(known.str)
        const text = placedText(known, matrix, isVertical(item))
        if (text !== undefined) placed.push({ ...text, contentId: marked.id })
      }
    }
    const straight = placed.filter((text) => !text.isTilted)
    return { placed: joinedAtAccents(straight.length > 0 ? straight : placed), isUnreadable: tally.isUnreadable }
  }

  /** Undefined where they are not read. */
  private async marks(sheet: PdfSheet, matrix: Affine): Promise<PageMarks | undefined> {
    if (this.drawingCpuMs > MAX_DRAWING_CPU_MS) {
      this.undrawnPage ??= sheet.pageNumber
      return undefined
    }
    const startedAtMs = cpuMs()
    try {
      const { DISABLE } = this.pdfjs.AnnotationMode
      const list = await sheet.getOperatorList({ annotationMode: DISABLE })
      // pdf.js provides the fonts of the page a few turns after its operators.
      await nextTurn()
      return pageMarks(list, {
        ops: this.pdfjs.OPS,
        matrix,
        isShown: (group) => this.layers?.isVisible(group) !== false,
        onGlyph: (fontName, glyph) => {
          this.fonts.observe(fontName, glyph, sheet)
        },
        glyphScale: (fontName) => this.fonts.entry(fontName, sheet).glyphScale,
      })
    } catch {
      return undefined
    } finally {
      this.drawingCpuMs += cpuMs() - startedAtMs
    }
  }
}

/** The places of pictures that no tag describes, as many as the tags leave. */
function droppedPictures(
  pictures: readonly Picture[],
  structure: StructureNode | undefined,
  page: { width: number; height: number },
): string[] {
  const notable = notablePictures(pictures, page)
  const places = notable.map(({ x1, y1, x2, y2 }) => [x1, y1, x2, y2].map(Math.round).join(' '))
  return places.slice(0, Math.max(0, places.length - describedPictures(structure)))
}

/** CPU time of this process since its start. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}
