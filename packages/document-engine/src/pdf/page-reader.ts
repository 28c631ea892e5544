import { setImmediate as nextTurn } from 'node:timers/promises'
import { annotationTexts, linkAreas } from './annotations.js'
import { type PageMarks, pageMarks } from './content-stream.js'
import { joinedLines, turnedLine } from './drawn-lines.js'
import { FontBook, type ObservedFont } from './fonts.js'
import { type Affine, affineOf, compose, type PlacedText } from './geometry.js'
import { ARTIFACT, type PdfPage, type StructureNode, type TextRun } from './layout/layout-model.js'
import type { PdfDocument, Pdfjs, PdfSheet } from './pdfjs.js'
import { structureOf } from './structure-tree.js'
import { joinedAtAccents, shownText, withoutCopies, withSoftHyphens } from './text-cleanup.js'
import { placedText, type TextItem, turnedForReading } from './text-placement.js'

/**
 * Most CPU time for the drawings of one document; pages after that are read without lines, so that the document gets a
 * result. CPU time, because a busy machine must give the same result.
 */
const MAX_DRAWING_CPU_MS = 6000
/** The same for tags: pdf.js takes the square of a table's rows on each of its pages. */
const MAX_STRUCTURE_CPU_MS = 3000
const NO_MARKS: PageMarks = { lines: [], stretches: [], softHyphens: [] }

type Layers = Awaited<ReturnType<PdfDocument['getOptionalContentConfig']>>

/** A page whose fonts are not final: glyphs on later pages may change what is known of them. */
export interface UnsettledPage {
  readonly page: Omit<PdfPage, 'runs'>
  readonly texts: readonly { readonly placed: PlacedText; readonly font: ObservedFont }[]
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
    const placed = await this.placedTexts(sheet, matrix, structure !== undefined)
    const marks = await this.marks(sheet, matrix)
    const annotations: unknown[] = await sheet.getAnnotations().catch(() => [])
    const shown = withSoftHyphens(shownText(placed, marks.stretches), marks.softHyphens)
    const texts = [...shown, ...annotationTexts(annotations, matrix)]
    const turned = turnedForReading(texts, viewport.width, viewport.height)
    const { width, height } = turned
    const rules = joinedLines(
      marks.lines.map((line) => turnedLine(line, turned.matrix)),
      turned,
    )
    const links = linkAreas(annotations, compose(turned.matrix, matrix))
    return {
      page: { number: sheet.pageNumber, width, height, rules, links, structure },
      texts: withoutCopies(turned.texts).map((placed) => ({
        placed,
        font: this.fonts.entry(placed.fontName, sheet).font,
      })),
    }
  }

  /** Undefined without tags. */
  private async structure(sheet: PdfSheet): Promise<StructureNode | undefined> {
    if (this.structureCpuMs > MAX_STRUCTURE_CPU_MS) return undefined
    const startedAtMs = cpuMs()
    try {
      return structureOf(await sheet.getStructTree())
    } catch {
      return undefined
    } finally {
      this.structureCpuMs += cpuMs() - startedAtMs
    }
  }

  private async placedTexts(sheet: PdfSheet, matrix: Affine, isTagged: boolean): Promise<PlacedText[]> {
    // Presentation forms are resolved in logical order; pdf.js would do it in the order of the page.
    const content = await sheet.getTextContent({ disableNormalization: true, includeMarkedContent: isTagged })
    const isVertical = (item: TextItem) => content.styles[item.fontName]?.vertical === true
    const marked = new OpenContent()
    const placed: PlacedText[] = []
    for (const item of content.items) {
      if (!('str' in item)) marked.pass(item)
      else {
        const text = placedText(item, matrix, isVertical(item))
        if (text !== undefined) placed.push({ ...text, contentId: marked.id })
      }
    }
    const straight = placed.filter((text) => !text.isTilted)
    return joinedAtAccents(straight.length > 0 ? straight : placed)
  }

  private async marks(sheet: PdfSheet, matrix: Affine): Promise<PageMarks> {
    if (this.drawingCpuMs > MAX_DRAWING_CPU_MS) {
      this.undrawnPage ??= sheet.pageNumber
      return NO_MARKS
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
        onGlyph: (fontName, unicode, width) => {
          this.fonts.entry(fontName, sheet).font.observe(unicode, width)
        },
        glyphScale: (fontName) => this.fonts.entry(fontName, sheet).glyphScale,
      })
    } catch {
      return NO_MARKS
    } finally {
      this.drawingCpuMs += cpuMs() - startedAtMs
    }
  }
}

/** CPU time of this process since its start. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}
