import PDFDocument from 'pdfkit'
import { fileURLToPath } from 'node:url'
import { winAnsiCode } from './win-ansi.mjs'

const LIBERATION = (face) => fileURLToPath(import.meta.resolve(`pdfjs-dist/standard_fonts/LiberationSans-${face}.ttf`))

/**
 * The faces of each typeface, for body text and for headings. A face is a `standard` font of every PDF reader, the same
 * under a name and encoding of TeX's (`tex`), an `embedded` font file, or `cid`: a font that is only named, its
 * characters found through a predefined map.
 */
const standard = (name) => ({ kind: 'standard', name })
const tex = (name, metrics) => ({ kind: 'tex', name, metrics })
const embedded = (name) => ({ kind: 'embedded', name, file: LIBERATION(name) })
const cid = (name, ordering, encoding) => ({ kind: 'cid', name, ordering, encoding })

export const TYPEFACES = {
  times: {
    regular: standard('Times-Roman'),
    bold: standard('Times-Bold'),
    italic: standard('Times-Italic'),
    code: standard('Courier'),
  },
  helvetica: {
    regular: standard('Helvetica'),
    bold: standard('Helvetica-Bold'),
    italic: standard('Helvetica-Oblique'),
    code: standard('Courier'),
  },
  liberation: {
    regular: embedded('Regular'),
    bold: embedded('Bold'),
    italic: embedded('Italic'),
    code: standard('Courier'),
  },
  computerModern: {
    regular: tex('CMR10', 'Times-Roman'),
    bold: tex('CMBX10', 'Times-Bold'),
    italic: tex('CMTI10', 'Times-Italic'),
    code: tex('CMTT10', 'Courier'),
  },
  chinese: same(cid('STSong-Light', 'GB1', 'UniGB-UCS2-H')),
  japanese: same(cid('KozMinPro-Regular', 'Japan1', 'UniJIS-UCS2-H')),
}

/** Whether every character of the face is as wide as the others. */
export const isFixedPitch = ({ name, metrics }) => name === 'Courier' || metrics === 'Courier'

function same(face) {
  return { regular: face, bold: face, italic: face, code: face }
}

/** Characters of a TeX font that stand for several letters, by their codes there. */
export const LIGATURES = { ff: 27, fi: 28, fl: 29, ffi: 30, ffl: 31 }
const JOINED = /ffi|ffl|ff|fi|fl|./gu
const SINGLE = /./gu
const CLOSE_PAIRS = {
  To: -0.083,
  Wh: -0.06,
  Va: -0.11,
  av: -0.028,
  ve: -0.028,
  wo: -0.028,
  ke: -0.028,
  oc: 0.028,
  bo: 0.028,
}

const metricsDocument = new PDFDocument({ autoFirstPage: false })
const widths = new Map()

/** Of one character of a font of pdfkit, in ems. */
export function characterWidth(metrics, character) {
  const key = `${metrics} ${character}`
  let width = widths.get(key)
  if (width === undefined) {
    width = metricsDocument.font(metrics).fontSize(1000).widthOfString(character) / 1000
    widths.set(key, width)
  }
  return width
}

/** The glyphs of a word: {character, code, kern}, where `kern` is the gap before the next one, in ems. */
function glyphs(face, text) {
  const joined = face.kind === 'tex' && !isFixedPitch(face)
  const characters = text.match(joined ? JOINED : SINGLE) ?? []
  return characters.map((character, index) => ({
    character,
    code: face.kind === 'cid' ? character.charCodeAt(0) : (LIGATURES[character] ?? winAnsiCode(character)),
    kern: joined ? (CLOSE_PAIRS[character + characters[index + 1]] ?? 0) : 0,
  }))
}

const glyphWidth = (face, { character }) => {
  if (face.kind === 'cid') return character.codePointAt(0) < 0x80 ? 0.5 : 1
  return Array.from(character).reduce(
    (sum, one) => sum + characterWidth(face.metrics ?? face.file ?? face.name, one),
    0,
  )
}

/** Of a text in one face, in ems: to be multiplied by the size. */
export const textWidth = (face, text) =>
  glyphs(face, text).reduce((sum, glyph) => sum + glyphWidth(face, glyph) + glyph.kern, 0)

const hexadecimal = (face, code) => code.toString(16).padStart(face.kind === 'cid' ? 4 : 2, '0')

/**
 * The operand of TJ for words with `gap` ems between them. `hasBlanks` writes the blanks as characters and only the rest
 * of the gap as a distance; otherwise the words are held apart by distances alone, as TeX does.
 */
export function textOperand(face, words, gap, hasBlanks) {
  const blankWidth = hasBlanks ? textWidth(face, ' ') : 0
  const parts = []
  words.forEach((word, index) => {
    if (index > 0) {
      const rest = gap - blankWidth
      if (Math.abs(rest) > 0.0005) parts.push(String(Math.round(-rest * 1000)))
      if (hasBlanks) parts.push(`<${hexadecimal(face, 0x20)}>`)
    }
    let run = ''
    for (const glyph of glyphs(face, word)) {
      run += hexadecimal(face, glyph.code)
      if (glyph.kern === 0) continue
      parts.push(`<${run}>`, String(Math.round(-glyph.kern * 1000)))
      run = ''
    }
    if (run !== '') parts.push(`<${run}>`)
  })
  return `[${parts.join(' ')}]`
}
