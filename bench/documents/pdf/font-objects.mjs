import { characterWidth, isFixedPitch, LIGATURES } from './fonts.mjs'

function texFont(document, face) {
  const ligature = (text) =>
    Math.round(Array.from(text).reduce((sum, one) => sum + characterWidth(face.metrics, one), 0) * 1000)
  const printable = Array.from({ length: 224 }, (_, index) => Math.round(latinWidth(face.metrics, index + 32) * 1000))
  const descriptor = document.ref({
    Type: 'FontDescriptor',
    FontName: `XYZABC+${face.name}`,
    Flags: isFixedPitch(face) ? 5 : 4,
    FontBBox: [-40, -250, 1009, 750],
    ItalicAngle: face.name.startsWith('CMTI') ? -14 : 0,
    Ascent: 694,
    Descent: -194,
    CapHeight: 683,
    StemV: face.name.startsWith('CMBX') ? 114 : 69,
  })
  descriptor.end()
  const differences = [
    27,
    ...Object.keys(LIGATURES),
    0x91,
    'quoteleft',
    'quoteright',
    'quotedblleft',
    'quotedblright',
    'bullet',
    'endash',
    'emdash',
  ]
  return {
    Type: 'Font',
    Subtype: 'Type1',
    BaseFont: `XYZABC+${face.name}`,
    FirstChar: 27,
    LastChar: 255,
    Widths: [...Object.keys(LIGATURES).map(ligature), ...printable],
    FontDescriptor: descriptor,
    Encoding: { Type: 'Encoding', BaseEncoding: 'WinAnsiEncoding', Differences: differences },
  }
}

const HIGH = { 0x91: '‘', 0x92: '’', 0x93: '“', 0x94: '”', 0x95: '•', 0x96: '–', 0x97: '—' }
function latinWidth(metrics, code) {
  return code >= 0x7f && code < 0xa0 && HIGH[code] === undefined
    ? 0
    : characterWidth(metrics, HIGH[code] ?? String.fromCharCode(code))
}

function cidFont(document, face) {
  const descriptor = document.ref({
    Type: 'FontDescriptor',
    FontName: face.name,
    Flags: 6,
    FontBBox: [0, -200, 1000, 900],
    ItalicAngle: 0,
    Ascent: 880,
    Descent: -120,
    CapHeight: 880,
    StemV: 93,
  })
  descriptor.end()
  const descendant = document.ref({
    Type: 'Font',
    Subtype: 'CIDFontType0',
    BaseFont: face.name,
    CIDSystemInfo: { Registry: new String('Adobe'), Ordering: new String(face.ordering), Supplement: 2 },
    FontDescriptor: descriptor,
    DW: 1000,
    W: [1, 95, 500],
  })
  descendant.end()
  return {
    Type: 'Font',
    Subtype: 'Type0',
    BaseFont: `${face.name}-${face.encoding}`,
    Encoding: face.encoding,
    DescendantFonts: [descendant],
  }
}

const DICTIONARIES = {
  standard: (_document, face) => ({
    Type: 'Font',
    Subtype: 'Type1',
    BaseFont: face.name,
    Encoding: 'WinAnsiEncoding',
  }),
  tex: texFont,
  cid: cidFont,
}

/** A font object of the document for a face that is written by its codes. */
export function fontReference(document, face) {
  const reference = document.ref(DICTIONARIES[face.kind](document, face))
  reference.end()
  return reference
}
