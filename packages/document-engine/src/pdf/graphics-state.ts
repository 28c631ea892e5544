import { type Affine, affineOf, applied, compose, IDENTITY, movedTo, type Point } from './geometry.js'
import type { Pdfjs } from './pdfjs.js'

/** Deeper is no document but an attack on whoever keeps the stack. */
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

/** What an operator that sets parameters of text changes. */
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

/** The part of the graphics state that says where text and lines stand (PDF 32000-1, 8.4 and 9.3). */
export class GraphicsState {
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

  /** Where the next glyph stands, in the user space of the page. */
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

  /** Takes in one operator of an operator list; those that move nothing are ignored. */
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
