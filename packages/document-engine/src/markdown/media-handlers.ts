import { collapseBlanks } from './characters.js'
import type { Handler, Reading, Style } from './element-handler.js'
import { readImage } from './image-reader.js'
import { mediaTarget } from './link-target.js'
import { attributeOf, childrenOf, classesOf, hasAttribute, type MarkupNode, tagOf } from './markup-node.js'
import { addFormula } from './math-handlers.js'
import { delimitedTex, findMath, tidyTex } from './math-reader.js'

const MOST_NODES_BESIDE = 100

export const readPicture: Handler = (element, reading, style) => {
  if (isFormula(element)) {
    // The picture of a formula stands beside its MathML for browsers that have none.
    const { parentNode } = element
    if (parentNode !== null && tagOf(parentNode) === 'span' && findMath(parentNode, MOST_NODES_BESIDE)) return
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

/** A film from elsewhere becomes a link; other frames are advertisements and widgets. */
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
