import { elementCounter, scanXml, type XmlElement } from './xml.js'

/** Looks and page layout, half of what Word writes; no word of the text and nothing that a style map asks for. */
const LOOKS: ReadonlySet<string> = new Set([
  ...['rFonts', 'sz', 'szCs', 'bCs', 'iCs', 'lang', 'color', 'kern', 'spacing', 'position', 'w', 'noProof', 'effect'],
  ...['shd', 'bdr', 'fitText', 'snapToGrid', 'eastAsianLayout', 'webHidden', 'rtl', 'cs', 'em', 'shadow', 'outline'],
  ...['ind', 'jc', 'tabs', 'keepNext', 'keepLines', 'widowControl', 'contextualSpacing', 'pBdr', 'outlineLvl'],
  ...['autoSpaceDE', 'autoSpaceDN', 'adjustRightInd', 'suppressAutoHyphens', 'textAlignment', 'cnfStyle', 'divId'],
  ...['tblW', 'tblInd', 'tblBorders', 'tblLayout', 'tblLook', 'tblCellMar', 'tblGrid', 'tblOverlap', 'tblpPr'],
  ...['tcW', 'tcBorders', 'tcMar', 'vAlign', 'noWrap', 'hideMark', 'textDirection', 'trHeight', 'cantSplit'],
  ...[
    'sectPr',
    'proofErr',
    'lastRenderedPageBreak',
    'bookmarkEnd',
    'rPrChange',
    'pPrChange',
    'tcPrChange',
    'trPrChange',
  ],
])

/**
 * A part of a Word document without what is looks only: the library that reads it builds trees of everything. Also the
 * place where a part is looked through before: nothing deep, vast or with entities of its own gets beyond it.
 *
 * @param countElement called for each element that stays; throws when there were too many
 * @throws EngineFault `broken`, `too_large`
 */
export function slimmed(bytes: Uint8Array, countElement: ReturnType<typeof elementCounter>): string {
  const xml: string[] = ['<?xml version="1.0" encoding="UTF-8"?>']
  let skippedDepth = 0
  scanXml(bytes, {
    open(name, attributes, prefixedName) {
      if (skippedDepth > 0 || LOOKS.has(name)) {
        skippedDepth += 1
        return
      }
      countElement()
      xml.push(`<${prefixedName}${attributeText(attributes)}>`)
    },
    text(text) {
      if (skippedDepth === 0) xml.push(escapeXml(text))
    },
    close(_name, prefixedName) {
      if (skippedDepth > 0) skippedDepth -= 1
      else xml.push(`</${prefixedName}>`)
    },
  })
  return xml.join('')
}

function attributeText(attributes: XmlElement['attributes']): string {
  let text = ''
  for (const [name, value] of Object.entries(attributes)) {
    // Editing sessions: one to five on every paragraph and run.
    if (!name.includes(':rsid')) text += ` ${name}="${escapeXml(value).replaceAll('"', '&quot;')}"`
  }
  return text
}

/** Characters that XML 1.0 has no way to write are left out. */
function escapeXml(text: string): string {
  return text
    .replaceAll(/[^\t\n\r\u0020-\ufffd]/g, '')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
}
