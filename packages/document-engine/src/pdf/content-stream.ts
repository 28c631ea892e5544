import { MAX_SHAPES, type SmallShape, smallShape } from './drawn-bullets.js'
import { filledLines, strokedLines } from './drawn-lines.js'
import { type Affine, affineOf, applied, compose, IDENTITY, isIndexed, movedTo, type Point } from './geometry.js'
import type { Rule } from './layout/layout-model.js'
import type { Pdfjs } from './pdfjs.js'
import { type Picture, PictureTrace } from './pictures.js'

/** Most saved graphics states; more of them are an attack on the reader's memory. */
const MAX_SAVED = 10_000

interface Saved {
  readonly matrix: Affine
  readonly fontName: string
  readonly fontSize: number
  readonly renderingMode: number
  readonly characterSpacing: number
  readonly wordSpacing: number
  readonly horizontalScale: number
  readonly leading: number
  readonly rise: number
}

const INITIAL: Saved = {
  matrix: IDENTITY,
  fontName: '',
  fontSize: 0,
  renderingMode: 0,
  characterSpacing: 0,
  wordSpacing: 0,
  horizontalScale: 1,
  leading: 0,
  rise: 0,
}

/** Text parameters that an operator sets. */
function textChange(ops: Pdfjs['OPS'], operator: number, first: unknown, second: unknown): Partial<Saved> | undefined {
  switch (operator) {
    case ops.setFont:
      return { fontName: String(first), fontSize: Number(second) }
    case ops.setTextRenderingMode:
      return { renderingMode: Number(first) }
    case ops.setCharSpacing:
      return { characterSpacing: Number(first) }
    case ops.setWordSpacing:
      return { wordSpacing: Number(first) }
    case ops.setHScale:
      return { horizontalScale: Number(first) / 100 }
    case ops.setLeading:
      return { leading: Number(first) }
    case ops.setLeadingMoveText:
      return { leading: -Number(second) }
    case ops.setTextRise:
      return { rise: Number(first) }
    default:
      return undefined
  }
}

/** The part of the graphics state that places text and lines (PDF 32000-1, 8.4 and 9.3). */
class GraphicsState {
  private current = INITIAL
  private readonly saved: Saved[] = []
  private textMatrix: Affine = IDENTITY
  private lineMatrix: Affine = IDENTITY

  constructor(private readonly ops: Pdfjs['OPS']) {}

  get matrix(): Affine {
    return this.current.matrix
  }

  get fontName(): string {
    return this.current.fontName
  }

  get renderingMode(): number {
    return this.current.renderingMode
  }

  /** Position of the next glyph, in the user space of the page. */
  textOrigin(): Point {
    return applied(compose(this.current.matrix, this.textMatrix), 0, this.current.rise)
  }

  /** @param width of the glyph, for a font of size 1 */
  advanceByGlyph(width: number, isSpace: boolean): void {
    const { fontSize, characterSpacing, wordSpacing, horizontalScale } = this.current
    const advance = width * fontSize + characterSpacing + (isSpace ? wordSpacing : 0)
    this.textMatrix = movedTo(this.textMatrix, advance * horizontalScale, 0)
  }

  /** @param thousandths of the font size, to the left */
  advanceByAdjustment(thousandths: number): void {
    const advance = (-thousandths / 1000) * this.current.fontSize * this.current.horizontalScale
    this.textMatrix = movedTo(this.textMatrix, advance, 0)
  }

  /** Applies one operator of an operator list; operators without effect on positions are ignored. */
  apply(operator: number, args: readonly unknown[]): void {
    const { ops } = this
    if (operator === ops.save || operator === ops.paintFormXObjectBegin) this.save()
    if (operator === ops.restore || operator === ops.paintFormXObjectEnd) this.restore()
    if (operator === ops.transform) this.transform(args)
    if (operator === ops.paintFormXObjectBegin) this.transform(args[0])
    const change = textChange(ops, operator, args[0], args[1])
    if (change !== undefined) this.current = { ...this.current, ...change }
    this.moveText(operator, args)
  }

  private moveText(operator: number, [first, second]: readonly unknown[]): void {
    const { ops, lineMatrix } = this
    if (operator === ops.beginText) this.startLine(IDENTITY)
    else if (operator === ops.setTextMatrix) this.startLine(affineOf(first) ?? IDENTITY)
    else if (operator === ops.nextLine) this.startLine(movedTo(lineMatrix, 0, -this.current.leading))
    else if (operator === ops.moveText || operator === ops.setLeadingMoveText) {
      this.startLine(movedTo(lineMatrix, Number(first), Number(second)))
    }
  }

  private startLine(matrix: Affine): void {
    this.textMatrix = matrix
    this.lineMatrix = matrix
  }

  private save(): void {
    if (this.saved.length < MAX_SAVED) this.saved.push(this.current)
  }

  private restore(): void {
    this.current = this.saved.pop() ?? this.current
  }

  private transform(matrix: unknown): void {
    const inner = affineOf(matrix)
    if (inner !== undefined) this.current = { ...this.current, matrix: compose(this.current.matrix, inner) }
  }
}

/** PDF 32000-1, 9.3.6: text that is filled and stroked looks bold; text that is neither is invisible. */
const FILLED_AND_STROKED = 2
const NOT_DRAWN = 3
const SOFT_HYPHEN = '\u00AD'
/** A page with more lines is a drawing. */
const MAX_LINES = 20_000

/** A stretch of a baseline whose text is invisible, bold or on a hidden layer. */
export interface MarkedStretch {
  readonly x1: number
  readonly x2: number
  readonly y: number
  readonly kind: 'invisible' | 'hidden' | 'stroked'
}

export interface PageMarks {
  readonly lines: readonly Rule[]
  readonly stretches: readonly MarkedStretch[]
  /** Start positions of glyphs that their font encodes as soft hyphens. */
  readonly softHyphens: readonly Point[]
  readonly pictures: readonly Picture[]
  readonly smallShapes: readonly SmallShape[]
}

interface MarkSources {
  readonly ops: Pdfjs['OPS']
  /** From the user space of the page to the space of `lines` and `stretches`. */
  readonly matrix: Affine
  /** Whether the layer of a marked content is visible. */
  isShown(group: unknown): boolean
  onGlyph(fontName: string, glyph: Glyph): void
  /** Thousandths as the font counts them: 0.001 but for Type 3 fonts. */
  glyphScale(fontName: string): number
}

interface OperatorList {
  readonly fnArray: readonly number[]
  readonly argsArray: readonly unknown[]
}

/** Reads the drawn lines of a page, and the stretches of text that are not drawn plainly. */
export function pageMarks(list: OperatorList, sources: MarkSources): PageMarks {
  const walk = new MarkWalk(sources)
  for (const [index, operator] of list.fnArray.entries()) {
    const args = list.argsArray[index]
    walk.step(operator, Array.isArray(args) ? args : [])
  }
  walk.finish()
  return walk
}

class MarkWalk implements PageMarks {
  readonly lines: Rule[] = []
  readonly stretches: MarkedStretch[] = []
  readonly softHyphens: Point[] = []
  readonly smallShapes: SmallShape[] = []
  private readonly state: GraphicsState
  private readonly trace: PictureTrace
  /** Whether the layer of each open marked content is visible. */
  private readonly layers: boolean[] = []
  private hiddenLayers = 0

  constructor(private readonly sources: MarkSources) {
    this.state = new GraphicsState(sources.ops)
    this.trace = new PictureTrace(sources.ops, () => (this.isHidden ? undefined : this.seen))
  }

  get pictures(): readonly Picture[] {
    return this.trace.pictures
  }

  finish(): void {
    this.trace.finish()
  }

  step(operator: number, args: readonly unknown[]): void {
    const { ops } = this.sources
    this.trace.step(operator, args)
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
    const { ops } = this.sources
    const [painting, segments, bounds] = args
    if (this.lines.length > MAX_LINES || this.isHidden || !Array.isArray(segments)) return
    const { seen } = this
    const isStroked = [ops.stroke, ops.closeStroke].includes(Number(painting))
    const isFilled = [ops.fill, ops.eoFill].includes(Number(painting))
    const isBoth = [ops.fillStroke, ops.eoFillStroke, ops.closeFillStroke, ops.closeEOFillStroke].includes(
      Number(painting),
    )
    if (isStroked || isFilled || isBoth) this.addShape(smallShape(bounds, seen, !isStroked))
    if (isStroked || isBoth) this.lines.push(...strokedLines(segments[0], seen).slice(0, MAX_LINES))
    else if (isFilled) this.lines.push(...filledLines(segments[0], seen).slice(0, MAX_LINES))
  }

  private addShape(shape: SmallShape | undefined): void {
    if (shape !== undefined && this.smallShapes.length <= MAX_SHAPES) this.smallShapes.push(shape)
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
        sources.onGlyph(state.fontName, glyph)
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

  /** From the current user space to the displayed page. */
  private get seen(): Affine {
    return compose(this.sources.matrix, this.state.matrix)
  }

  private get isHidden(): boolean {
    return this.hiddenLayers > 0
  }
}

export interface Glyph {
  readonly unicode: string
  readonly width: number
  readonly isSpace?: unknown
  readonly originalCharCode?: unknown
  /** Name of the glyph in a font that is drawn glyph by glyph (Type 3). */
  readonly operatorListId?: unknown
}

function isGlyph(value: unknown): value is Glyph {
  if (typeof value !== 'object' || value === null) return false
  return 'unicode' in value && typeof value.unicode === 'string' && 'width' in value && typeof value.width === 'number'
}
