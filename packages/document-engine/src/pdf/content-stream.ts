import { filledLines, strokedLines } from './drawn-lines.js'
import { type Affine, applied, compose, isIndexed, type Point } from './geometry.js'
import { GraphicsState } from './graphics-state.js'
import type { Rule } from './layout/pdf-page.js'
import type { Pdfjs } from './pdfjs.js'

/** PDF 32000-1, 9.3.6: text that is filled and stroked looks bold; text that is neither is not seen. */
const FILLED_AND_STROKED = 2
const NOT_DRAWN = 3
const SOFT_HYPHEN = '\u00AD'
/** A page with more lines is a drawing. */
const MAX_LINES = 20_000

/** A stretch of text that the page shows otherwise than plainly, along its baseline. */
export interface MarkedStretch {
  readonly x1: number
  readonly x2: number
  readonly y: number
  readonly kind: 'invisible' | 'hidden' | 'stroked'
}

export interface PageMarks {
  readonly lines: readonly Rule[]
  readonly stretches: readonly MarkedStretch[]
  /** Where the glyphs begin that their font calls soft hyphens. */
  readonly softHyphens: readonly Point[]
}

interface MarkSources {
  readonly ops: Pdfjs['OPS']
  /** From the user space of the page to where `lines` and `stretches` are wanted. */
  readonly matrix: Affine
  /** Whether the layer of that content is shown. */
  isShown(group: unknown): boolean
  onGlyph(fontName: string, unicode: string, width: number): void
  /** Thousandths as the font counts them: 0.001 but for Type 3 fonts. */
  glyphScale(fontName: string): number
}

interface OperatorList {
  readonly fnArray: readonly number[]
  readonly argsArray: readonly unknown[]
}

/** Reads what a page draws: lines, and which text is drawn in an unusual way. */
export function pageMarks(list: OperatorList, sources: MarkSources): PageMarks {
  const walk = new MarkWalk(sources)
  for (const [index, operator] of list.fnArray.entries()) {
    const args = list.argsArray[index]
    walk.step(operator, Array.isArray(args) ? args : [])
  }
  return walk
}

class MarkWalk implements PageMarks {
  readonly lines: Rule[] = []
  readonly stretches: MarkedStretch[] = []
  readonly softHyphens: Point[] = []
  private readonly state: GraphicsState
  /** Of each marked content that is open: whether its layer is shown. */
  private readonly layers: boolean[] = []
  private hiddenLayers = 0

  constructor(private readonly sources: MarkSources) {
    this.state = new GraphicsState(sources.ops)
  }

  step(operator: number, args: readonly unknown[]): void {
    const { ops } = this.sources
    if (operator === ops.showText) this.showText(args[0])
    else if (operator === ops.constructPath) this.path(args)
    else if (operator === ops.beginMarkedContent) this.beginLayer(true)
    else if (operator === ops.beginMarkedContentProps) {
      this.beginLayer(args[0] !== 'OC' || this.sources.isShown(args[1]))
    } else if (operator === ops.endMarkedContent) this.endLayer()
    else this.state.apply(operator, args)
  }

  private beginLayer(isShown: boolean): void {
    this.layers.push(isShown)
    if (!isShown) this.hiddenLayers += 1
  }

  private endLayer(): void {
    if (this.layers.pop() === false) this.hiddenLayers -= 1
  }

  private path(args: readonly unknown[]): void {
    const { ops, matrix } = this.sources
    const [painting, segments] = args
    if (this.lines.length > MAX_LINES || this.isHidden || !Array.isArray(segments)) return
    const seen = compose(matrix, this.state.matrix)
    const isStroked = [ops.stroke, ops.closeStroke].includes(Number(painting))
    const isFilled = [ops.fill, ops.eoFill].includes(Number(painting))
    const isBoth = [ops.fillStroke, ops.eoFillStroke, ops.closeFillStroke, ops.closeEOFillStroke].includes(
      Number(painting),
    )
    if (isStroked || isBoth) this.lines.push(...strokedLines(segments[0], seen).slice(0, MAX_LINES))
    else if (isFilled) this.lines.push(...filledLines(segments[0], seen).slice(0, MAX_LINES))
  }

  private showText(glyphs: unknown): void {
    if (!isIndexed(glyphs)) return
    const { state, sources } = this
    const kind = this.kindOfText()
    const scale = sources.glyphScale(state.fontName)
    const from = state.textOrigin()
    for (const glyph of Array.from(glyphs)) {
      if (typeof glyph === 'number') state.advanceByAdjustment(glyph)
      else if (isGlyph(glyph)) {
        if (glyph.unicode === SOFT_HYPHEN) this.softHyphens.push(applied(sources.matrix, ...state.textOrigin()))
        sources.onGlyph(state.fontName, glyph.unicode, glyph.width)
        state.advanceByGlyph(glyph.width * scale, glyph.isSpace === true)
      }
    }
    if (kind === undefined) return
    const [x1, y] = applied(sources.matrix, ...from)
    const [x2] = applied(sources.matrix, ...state.textOrigin())
    this.stretches.push({ x1: Math.min(x1, x2), x2: Math.max(x1, x2), y, kind })
  }

  private kindOfText(): MarkedStretch['kind'] | undefined {
    if (this.isHidden) return 'hidden'
    if (this.state.renderingMode === NOT_DRAWN) return 'invisible'
    return this.state.renderingMode === FILLED_AND_STROKED ? 'stroked' : undefined
  }

  private get isHidden(): boolean {
    return this.hiddenLayers > 0
  }
}

interface Glyph {
  readonly unicode: string
  readonly width: number
  readonly isSpace?: unknown
}

function isGlyph(value: unknown): value is Glyph {
  if (typeof value !== 'object' || value === null) return false
  return 'unicode' in value && typeof value.unicode === 'string' && 'width' in value && typeof value.width === 'number'
}
