import { collapseBlanks } from './characters.js'
import { codeLanguage, codeText } from './code-reader.js'
import type { Inline } from './document-model.js'
import type { Handler, Reading, Style } from './element-handler.js'
import { linkTarget } from './link-target.js'
import { attributeOf, childrenOf, descendantsOf, type MarkupNode, tagOf, wholeText } from './markup-node.js'

export const readBlockCode: Handler = (element, reading, style) => {
  const text = codeText(element)
  reading.endParagraph()
  // Without text it may still hold a picture.
  if (text === '') readPictures(element, reading, style)
  else reading.addBlock({ kind: 'code', language: codeLanguage(element), text })
  reading.endParagraph()
}

export const readInlineCode: Handler = (element, reading, style) => {
  if (!style.isInLink && [...childrenOf(element)].some((child) => tagOf(child) === 'br')) {
    readBlockCode(element, reading, style)
    return
  }
  const whole = collapseBlanks(wholeText(element))
  const text = whole.trim()
  if (text === '') {
    readPictures(element, reading, style)
    return
  }
  if (whole.startsWith(' ')) reading.addText(' ', style)
  const url = style.isInLink ? undefined : onlyLinkTarget(element, text, reading)
  const code: Inline = { kind: 'code', text, marks: url === undefined ? style.marks : 0 }
  reading.addPiece(url === undefined ? code : { kind: 'link', url, content: [code], marks: style.marks })
  if (whole.endsWith(' ')) reading.addText(' ', style)
}

function readPictures(element: MarkupNode, reading: Reading, style: Style): void {
  for (const node of descendantsOf(element)) if (tagOf(node) === 'img') reading.readNode(node, style)
}

/** The target of a link that holds all of the code; Markdown has no links within code. */
function onlyLinkTarget(code: MarkupNode, text: string, reading: Reading): string | undefined {
  for (const node of descendantsOf(code)) {
    if (tagOf(node) !== 'a') continue
    if (collapseBlanks(wholeText(node)).trim() !== text) return undefined
    return linkTarget(attributeOf(node, 'href'), reading.baseUrl)
  }
  return undefined
}
