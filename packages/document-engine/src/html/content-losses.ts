import { classesOf, descendantsOf } from '../markdown/markup-node.js'
import { findMath } from '../markdown/math-handlers.js'
import { readImage } from '../markdown/media-handlers.js'
import type { EngineWarning } from '../model/document.js'
import { HtmlElement } from './html-node.js'

/** A picture of less data is an icon or keeps the place of one that is loaded later. */
const LEAST_DATA = 1000
const MOST_GLYPHS = 20_000
const FORMULA_CLASS = /^(?:tex|latex|math|katex|mwe-math-\S+)$/i

/** What cannot be read of the content of a page: pictures within the page itself, and formulas that are drawn only. */
export function contentLosses(body: HtmlElement): readonly EngineWarning[] {
  let [pictures, formulas] = [0, 0]
  for (const node of descendantsOf(body)) {
    if (!(node instanceof HtmlElement)) continue
    if (node.localName === 'img' && isUndescribed(node)) {
      if (isFormula(node)) formulas += 1
      else if (isPictureOfData(node)) pictures += 1
    } else if (node.localName === 'span' && classesOf(node).includes('katex')) {
      if (findMath(node, MOST_GLYPHS) === undefined) formulas += 1
    }
  }
  const warnings: EngineWarning[] = []
  if (pictures > 0) warnings.push({ code: 'pictures_dropped', message: pictureMessage(pictures) })
  if (formulas > 0) warnings.push({ code: 'equations_unread', message: formulaMessage(formulas) })
  return warnings
}

const isUndescribed = (image: HtmlElement): boolean =>
  `${image.attribute('alt')}${image.attribute('title')}`.trim() === ''

const isFormula = (image: HtmlElement): boolean => classesOf(image).some((name) => FORMULA_CLASS.test(name))

function isPictureOfData(image: HtmlElement): boolean {
  const source = image.attribute('src')
  return /^data:image/i.test(source) && source.length >= LEAST_DATA && readImage(image, '', 0) === undefined
}

const pictureMessage = (count: number): string =>
  `${count === 1 ? 'One picture has' : `${count} pictures have`} neither an address nor a description.`

const formulaMessage = (count: number): string =>
  `${count === 1 ? 'One formula is' : `${count} formulas are`} only drawn, without MathML, TeX or a description.`
