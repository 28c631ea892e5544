import { type Affine, applied } from './geometry.js'
import type { StructureNode } from './layout/layout-model.js'
import type { Pdfjs } from './pdfjs.js'

/** Most pictures of a page that are kept; small ones come by the thousand. */
const MAX_PICTURES = 5000
/** Points: a smaller picture is a rule, a bullet or an icon. */
const MIN_SIDE = 40
/** Points: most distance of the strips that some programs cut pictures into. */
const MAX_STRIP_GAP = 2
/** Share of the page from which on a picture is a scan, or the background of a slide. */
const PAGE_SHARE = 0.5

/** Place of a picture on the displayed page. */
export interface Picture {
  readonly x1: number
  readonly y1: number
  readonly x2: number
  readonly y2: number
}

/**
 * Finds pictures, which pdf.js leaves out of the list of operators because of `maxImageSize`: what remains of one is a transform
 * of the unit square with nothing painted behind it.
 */
export class PictureTrace {
  readonly pictures: Picture[] = []
  private at = 0
  private paintedAt = 0
  private transformedAt = 0
  private readonly saved: number[] = []

  /** @param place from the unit square to the displayed page; undefined on a hidden layer */
  constructor(
    private readonly ops: Pdfjs['OPS'],
    private readonly place: () => Affine | undefined,
  ) {}

  /** Before the operator changes the place. */
  step(operator: number, args: readonly unknown[]): void {
    const { ops } = this
    this.at += 1
    if (operator === ops.save) this.save()
    else if (operator === ops.restore) this.restore()
    else if (operator === ops.transform) this.transform()
    else if (isPainting(ops, operator, args)) this.paintedAt = this.at
  }

  /** At the end of the page. */
  finish(): void {
    this.look()
  }

  private save(): void {
    this.saved.push(this.transformedAt)
    this.transformedAt = 0
  }

  private restore(): void {
    this.look()
    this.transformedAt = this.saved.pop() ?? 0
  }

  private transform(): void {
    // Without a save, the next picture follows the inverse of the transform of the last one.
    if (this.transformedAt === this.at - 1) this.transformedAt = this.at
    else {
      this.look()
      this.transformedAt = this.at
    }
  }

  private look(): void {
    if (this.transformedAt <= this.paintedAt || this.pictures.length >= MAX_PICTURES) return
    this.paintedAt = this.at
    const matrix = this.place()
    if (matrix === undefined) return
    const corners = [applied(matrix, 0, 0), applied(matrix, 1, 0), applied(matrix, 0, 1), applied(matrix, 1, 1)]
    const [xs, ys] = [corners.map(([x]) => x), corners.map(([, y]) => y)]
    const picture = { x1: Math.min(...xs), y1: Math.min(...ys), x2: Math.max(...xs), y2: Math.max(...ys) }
    if (Math.max(picture.x2 - picture.x1, picture.y2 - picture.y1) >= MIN_SIDE) this.pictures.push(picture)
  }
}

function isPainting(ops: Pdfjs['OPS'], operator: number, args: readonly unknown[]): boolean {
  if (operator === ops.constructPath) return args[0] !== ops.endPath
  return operator === ops.showText || operator === ops.shadingFill
}

interface Size {
  readonly width: number
  readonly height: number
}

/** Whether pictures cover most of the page. */
export function isPictured(pictures: readonly Picture[], page: Size): boolean {
  const covered = pictures.reduce((sum, picture) => sum + areaOn(picture, page), 0)
  return covered >= PAGE_SHARE * page.width * page.height
}

function areaOn({ x1, y1, x2, y2 }: Picture, { width, height }: Size): number {
  return Math.max(0, Math.min(x2, width) - Math.max(x1, 0)) * Math.max(0, Math.min(y2, height) - Math.max(y1, 0))
}

/** The pictures of some size that are neither the background of the page nor outside of it; strips are joined. */
export function notablePictures(pictures: readonly Picture[], page: Size): Picture[] {
  return joinedStrips(pictures).filter((picture) => {
    const isLarge = picture.x2 - picture.x1 >= MIN_SIDE && picture.y2 - picture.y1 >= MIN_SIDE
    const area = areaOn(picture, page)
    return isLarge && area > 0 && area < PAGE_SHARE * page.width * page.height
  })
}

/** Joins pictures of one width that follow each other downwards or upwards. */
function joinedStrips(pictures: readonly Picture[]): Picture[] {
  const joined: Picture[] = []
  for (const picture of pictures) {
    const last = joined.at(-1)
    if (last !== undefined && isStripOf(last, picture)) {
      joined[joined.length - 1] = { ...last, y1: Math.min(last.y1, picture.y1), y2: Math.max(last.y2, picture.y2) }
    } else joined.push(picture)
  }
  return joined
}

function isStripOf(last: Picture, picture: Picture): boolean {
  const isSameWidth = Math.abs(last.x1 - picture.x1) <= MAX_STRIP_GAP && Math.abs(last.x2 - picture.x2) <= MAX_STRIP_GAP
  return isSameWidth && Math.max(picture.y1 - last.y2, last.y1 - picture.y2) <= MAX_STRIP_GAP
}

/** Pictures with a description in the tags of a page. */
export function describedPictures(node: StructureNode | undefined): number {
  if (node === undefined) return 0
  const own = node.role === 'Figure' && node.alt.trim() !== '' ? 1 : 0
  return node.children.reduce((sum, child) => sum + (typeof child === 'string' ? 0 : describedPictures(child)), own)
}
