import { childElements, descendant, type XmlElement } from './xml.js'

/** A rectangle on a slide, in units of the file. */
export interface Box {
  readonly left: number
  readonly top: number
  readonly right: number
  readonly bottom: number
}

export interface PlacedShape {
  readonly shape: XmlElement
  /** Undefined for a shape that is where its layout says. */
  readonly box: Box | undefined
}

/** Most nested groups whose coordinates are followed. */
const MOST_GROUPS = 32

type Transform = (box: Box) => Box

/** The shapes of a tree with their places; groups are flattened. Of alternatives for newer and older programs, takes the newer. */
export function placedShapes(tree: XmlElement | undefined): PlacedShape[] {
  const placed: PlacedShape[] = []
  const visit = (element: XmlElement | undefined, transform: Transform, depth: number): void => {
    for (const child of childElements(element)) {
      if (child.name === 'AlternateContent') visit(descendant(child, 'Choice'), transform, depth)
      else if (child.name === 'grpSp') {
        visit(child, depth < MOST_GROUPS ? within(child, transform) : transform, depth + 1)
      } else {
        const box = boxOf(child)
        placed.push({ shape: child, box: box && transform(box) })
      }
    }
  }
  visit(tree, (box) => box, 0)
  return placed
}

/** The place of a shape, as it says itself. */
export function boxOf(shape: XmlElement): Box | undefined {
  return rectangle(descendant(shape, 'spPr', 'xfrm') ?? descendant(shape, 'xfrm'), 'off', 'ext')
}

function rectangle(transform: XmlElement | undefined, offset: string, extent: string): Box | undefined {
  const number = (name: string, attribute: string): number =>
    Number(descendant(transform, name)?.attributes[attribute] ?? NaN)
  const [left, top] = [number(offset, 'x'), number(offset, 'y')]
  const [right, bottom] = [left + number(extent, 'cx'), top + number(extent, 'cy')]
  return Number.isFinite(right) && Number.isFinite(bottom) ? { left, top, right, bottom } : undefined
}

/** Coordinates within a group are its own. */
function within(group: XmlElement, outer: Transform): Transform {
  const transform = descendant(group, 'grpSpPr', 'xfrm')
  const place = rectangle(transform, 'off', 'ext')
  const inner = rectangle(transform, 'chOff', 'chExt')
  if (place === undefined || inner === undefined) return outer
  const scale = (from: number, to: number): number => (from === 0 ? 1 : to / from)
  const across = scale(inner.right - inner.left, place.right - place.left)
  const down = scale(inner.bottom - inner.top, place.bottom - place.top)
  return (box) =>
    outer({
      left: place.left + (box.left - inner.left) * across,
      right: place.left + (box.right - inner.left) * across,
      top: place.top + (box.top - inner.top) * down,
      bottom: place.top + (box.bottom - inner.top) * down,
    })
}

/** Most levels of rows and columns. */
const MOST_CUTS = 24
/** Part of a box that may overlap the one before it. */
const OVERLAP = 0.1

/**
 * Puts shapes in the order in which they are read: rows from top to bottom, in each its columns from left to right, and so on
 * within these. A shape without a place follows the one before it.
 */
export function readingOrder<Item extends { readonly box: Box | undefined }>(items: readonly Item[]): Item[] {
  let last: Box = { left: 0, top: 0, right: 0, bottom: 0 }
  const placed = items.map((item) => {
    last = item.box ?? last
    return { item, box: last }
  })
  return ordered(placed, 0, false).map(({ item }) => item)
}

interface Placed<Item> {
  readonly item: Item
  readonly box: Box
}

function ordered<Item>(items: readonly Placed<Item>[], depth: number, wasCut: boolean): Placed<Item>[] {
  if (items.length < 2) return [...items]
  const isAcross = depth % 2 === 1
  const parts = depth < MOST_CUTS ? cut(items, isAcross) : [items]
  if (parts.length > 1) return parts.flatMap((part) => ordered(part, depth + 1, true))
  // Neither rows nor columns: by the upper edge.
  if (depth >= MOST_CUTS || (!wasCut && isAcross))
    return [...items].sort((a, b) => a.box.top - b.box.top || a.box.left - b.box.left)
  return ordered(items, depth + 1, false)
}

/** Groups of boxes between which a straight line passes. */
function cut<Item>(items: readonly Placed<Item>[], isAcross: boolean): Placed<Item>[][] {
  const start = ({ box }: Placed<Item>): number => (isAcross ? box.left : box.top)
  const end = ({ box }: Placed<Item>): number => (isAcross ? box.right : box.bottom)
  const parts: Placed<Item>[][] = []
  let reach = -Infinity
  for (const item of [...items].sort((a, b) => start(a) - start(b))) {
    const size = end(item) - start(item)
    if (start(item) >= reach - size * OVERLAP) parts.push([])
    parts.at(-1)?.push(item)
    reach = Math.max(reach, end(item))
  }
  return parts
}
