import type { Inline } from './document-model.js'
import type { Handler, Reading, Style } from './element-handler.js'
import { collapseBlanks, destination } from './escape-markdown.js'
import {
  attributeOf,
  childrenOf,
  classesOf,
  hasAttribute,
  type MarkupNode,
  tagOf,
  UNSEEN_STYLE,
} from './markup-node.js'
import { addFormula, delimitedTex, findMath, tidyTex } from './math-handlers.js'

const SCHEMES: ReadonlySet<string> = new Set(['http:', 'https:', 'mailto:', 'tel:', 'ftp:'])
const IMAGE_SCHEMES: ReadonlySet<string> = new Set(['http:', 'https:'])

/** Destination of a link; undefined for a place on the same page and for other schemes. */
export function linkTarget(reference: string, baseUrl: string): string | undefined {
  const isElsewhere = (url: URL): boolean => url.hash === '' || !isSamePage(url, baseUrl)
  return target(reference, baseUrl, (url) => SCHEMES.has(url.protocol) && isElsewhere(url))
}

/** Destination of a picture or film; undefined for `data:` and invalid URLs. */
export function mediaTarget(reference: string, baseUrl: string): string | undefined {
  return target(reference, baseUrl, (url) => IMAGE_SCHEMES.has(url.protocol))
}

function target(reference: string, baseUrl: string, isWanted: (url: URL) => boolean): string | undefined {
  if (reference === '' || reference.startsWith('#')) return undefined
  const url = absolute(reference, baseUrl)
  if (url === undefined) return relativeTarget(reference, baseUrl)
  return isWanted(url) ? destination(url.href) : undefined
}

function absolute(reference: string, baseUrl: string): URL | undefined {
  try {
    return new URL(reference, baseUrl === '' ? undefined : baseUrl)
  } catch {
    return undefined
  }
}

// Without a base URL a relative reference is kept, unless it has a scheme and is only an invalid URL.
function relativeTarget(reference: string, baseUrl: string): string | undefined {
  const plain = reference.replace(/\p{Cc}/gu, '')
  if (baseUrl !== '' || /^[\w+.-]*:/.test(plain)) return undefined
  return destination(plain)
}

function isSamePage(url: URL, baseUrl: string): boolean {
  const base = absolute(baseUrl, '')
  return (
    base !== undefined &&
    url.href.slice(0, -url.hash.length) === base.href.slice(0, base.href.length - base.hash.length)
  )
}

const SOURCES = ['src', 'data-src', 'data-lazy-src', 'data-original', 'data-lazy'] as const
const SOURCE_SETS = ['srcset', 'data-srcset', 'data-lazy-srcset'] as const
// File names of tracking pixels and placeholders.
const BEACON_FILE =
  /(?:^|[/_.-])(?:pixel|beacon|spacer|blank|transparent|clear|1x1|tracking|tracker|px|utm|hit|grey|placeholder)\.(?:gif|png)$/i
const DOT_STYLE = /(?:^|[;\s])(?:width|height)\s{0,9}:\s{0,9}[01]px/i
const BEACON_PATH = /\/(?:pixel|beacon|collect|track|tracking|impression|hit|count)(?:\.php|\.aspx?)?\/?$/i

/** The picture of an `img`; undefined when it has no address or is a tracking pixel. */
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

/** The entry of a `srcset` with the largest width or density. Addresses may contain commas. */
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

const MOST_NODES_BESIDE = 100

/** The picture of a formula whose MathML stands beside it; it is for browsers without MathML. */
export function isBesideMath(image: MarkupNode): boolean {
  const { parentNode } = image
  if (parentNode === null || tagOf(parentNode) !== 'span' || !isFormula(image)) return false
  return findMath(parentNode, MOST_NODES_BESIDE) !== undefined
}

export const readPicture: Handler = (element, reading, style) => {
  if (isFormula(element)) {
    if (isBesideMath(element)) return
    const alt = attributeOf(element, 'alt')
    addFormula(delimitedTex(alt) || tidyTex(alt), false, reading, style)
    return
  }
  const image = readImage(element, reading.baseUrl, style.marks)
  if (image !== undefined) reading.addPiece(image)
}

function isFormula(image: MarkupNode): boolean {
  if (attributeOf(image, 'alt') === '') return false
  return classesOf(image).some((name) => /^(?:tex|latex|math|mwe-math-\S+|\S*-formula|\S*-tex|\S*-latex)$/i.test(name))
}

/** An embedded film becomes a link; other frames are advertisements and widgets. */
export const readFrame: Handler = (element, reading, style) => {
  const source = attributeOf(element, 'src') || attributeOf(element, 'data-src')
  const isFilm = hasAttribute(element, 'allowfullscreen') || attributeOf(element, 'allow').includes('fullscreen')
  if (isFilm || /\/(?:embed|video|videos|player)\b/i.test(source)) addMediaLink(element, source, reading, style)
}

export const readMedia: Handler = (element, reading, style) => {
  const sources = [...childrenOf(element)].filter((child) => tagOf(child) === 'source')
  const source = [element, ...sources]
    .map((carrier) => attributeOf(carrier, 'src'))
    .find((reference) => reference !== '')
  if (source !== undefined) addMediaLink(element, source, reading, style)
}

function addMediaLink(element: MarkupNode, source: string, reading: Reading, style: Style): void {
  const url = mediaTarget(source, reading.baseUrl)
  if (url === undefined || style.isInLink) return
  const title = collapseBlanks(attributeOf(element, 'title') || attributeOf(element, 'aria-label')).trim()
  const text = title === '' ? (tagOf(element) === 'audio' ? 'Audio' : 'Video') : title
  reading.addPiece({ kind: 'link', url, content: [{ kind: 'text', text, marks: 0 }], marks: style.marks })
}
