import { collapseBlanks } from './characters.js'
import { type Inline } from './document-model.js'
import { mediaTarget } from './link-target.js'
import { attributeOf, childrenOf, type MarkupNode, tagOf } from './markup-node.js'
import { UNSEEN_STYLE } from './unseen-style.js'

const SOURCES = ['src', 'data-src', 'data-lazy-src', 'data-original', 'data-lazy'] as const
const SOURCE_SETS = ['srcset', 'data-srcset', 'data-lazy-srcset'] as const
// File names and last path segments of pictures that only report a visit or hold a place.
const BEACON_FILE =
  /(?:^|[/_.-])(?:pixel|beacon|spacer|blank|transparent|clear|1x1|tracking|tracker|px|utm|hit|grey|placeholder)\.(?:gif|png)$/i
const DOT_STYLE = /(?:^|[;\s])(?:width|height)\s{0,9}:\s{0,9}[01]px/i
const BEACON_PATH = /\/(?:pixel|beacon|collect|track|tracking|impression|hit|count)(?:\.php|\.aspx?)?\/?$/i

/** The picture of an `img`, without markup of its own; undefined when it has no address or is there to count visits. */
export function readImage(image: MarkupNode, baseUrl: string, marks: number): Inline | undefined {
  if (isTiny(image) || isHidden(image)) return undefined
  const url = sourceOf(image, baseUrl)
  const alt = collapseBlanks(attributeOf(image, 'alt') || attributeOf(image, 'title')).trim()
  if (url === undefined || isBeacon(url, alt)) return undefined
  return { kind: 'image', alt, url, marks }
}

function sourceOf(image: MarkupNode, baseUrl: string): string | undefined {
  const references = SOURCES.map((name) => attributeOf(image, name))
  const { parentNode } = image
  const siblings = parentNode !== null && tagOf(parentNode) === 'picture' ? [...childrenOf(parentNode)] : []
  for (const carrier of [image, ...siblings.filter((node) => tagOf(node) === 'source')])
    for (const name of SOURCE_SETS) references.push(largestOf(attributeOf(carrier, name)))
  for (const reference of references) {
    const url = mediaTarget(reference, baseUrl)
    if (url !== undefined && !BEACON_FILE.test(pathOf(url))) return url
  }
  return undefined
}

/** The entry of a `srcset` with the largest width or density. Addresses may hold commas of their own. */
function largestOf(sourceSet: string): string {
  let largest = ''
  let largestSize = 0
  let url = ''
  const settle = (size: number): void => {
    if (url !== '' && size > largestSize) [largest, largestSize] = [url, size]
    url = ''
  }
  for (const token of sourceSet.split(/\s+/)) {
    const descriptor = /^(\d+(?:\.\d+)?)[wx](?:,(.*))?$/.exec(token)
    settle(Number(descriptor?.[1] ?? 1))
    url = (descriptor === null ? token : (descriptor[2] ?? '')).replace(/,$/, '')
    if (url.startsWith(',')) url = ''
  }
  settle(1)
  return largest
}

function isTiny(image: MarkupNode): boolean {
  const sides = [attributeOf(image, 'width'), attributeOf(image, 'height')]
  return sides.some((side) => /^[01](?:px)?$/.test(side)) || sides.every((side) => /^[0-3](?:px)?$/.test(side))
}

function isHidden(image: MarkupNode): boolean {
  const style = attributeOf(image, 'style')
  if (style === '') return false
  return UNSEEN_STYLE.test(style) || DOT_STYLE.test(style)
}

function isBeacon(url: string, alt: string): boolean {
  return alt === '' && url.includes('?') && BEACON_PATH.test(pathOf(url))
}

function pathOf(url: string): string {
  return url.replace(/[?#].*$/, '')
}
