import { deflateSync } from 'node:zlib'
import { deflated } from './inflating.js'
import { HELVETICA, onePage, pdfFile, showing, streamOf } from './pdf-file.js'

const TEXT = showing('(A line of text that can be read.)')

/** A page whose lines are dots without end, as those that lead to a page number, and lead nowhere. */
export const dottedLine = (): Buffer => onePage(streamOf(showing(`(A line ${'.'.repeat(200_000)}!)`)))

/** A few kilobytes whose content is two gibibytes of white space. */
export const stackedFlate = (): Buffer =>
  onePage(streamOf(deflateSync(deflated(2048), { level: 9 }), '/Filter [/FlateDecode /FlateDecode]'))

/** Every page an object of its own, all of them real. */
export function manyPages(pages = 200_000): Buffer {
  const kids = Array.from({ length: pages }, (_, index) => `${index + 3} 0 R`).join(' ')
  const page = '<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>'
  return pdfFile([
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Count ${pages} /Kids [${kids}] >>`,
    ...Array.from({ length: pages }, () => page),
  ])
}

/** One page that says it is a hundred million. */
export const claimedPages = (): Buffer =>
  Buffer.from(onePage(streamOf(TEXT)).toString('latin1').replace('/Count 1', '/Count 100000000'), 'latin1')

/** A node of the page tree that is its own child, and says it has no end. */
export const endlessPageTree = (): Buffer =>
  pdfFile(['<< /Type /Catalog /Pages 2 0 R >>', '<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 400 >>'])

/** A picture of ten thousand million pixels, a predictor of two thousand million columns, on a page with text. */
export function hugePicture(): Buffer {
  const picture = streamOf(
    deflated(64),
    '/Type /XObject /Subtype /Image /Width 100000 /Height 100000 /ColorSpace /DeviceRGB /BitsPerComponent 8 /Filter /FlateDecode',
  )
  const content = Buffer.concat([TEXT, Buffer.from(' q 600 0 0 800 0 0 cm /P Do Q')])
  return onePage(streamOf(content), HELVETICA, [picture], '/XObject << /P 6 0 R >>')
}

export const hugePredictor = (): Buffer =>
  onePage(
    streamOf(
      deflateSync(TEXT),
      '/Filter /FlateDecode /DecodeParms << /Predictor 15 /Columns 2000000000 /Colors 4 /BitsPerComponent 16 >>',
    ),
  )

/** The length of a stream, the size of the cross-reference table and its first section, all of them lies. */
export const hugeDeclarations = (): Buffer =>
  Buffer.from(
    onePage({ dictionary: '<< /Length 99999999999 >>', stream: TEXT })
      .toString('latin1')
      .replace(/xref\n0 \d+/, 'xref\n0 4294967295')
      .replace(/\/Size \d+/, '/Size 2147483647'),
    'latin1',
  )

/** Forms that draw each other twice: 2^40 times the innermost. */
export function drawnDoubling(levels = 40): Buffer {
  const form = (level: number) =>
    streamOf(
      Buffer.from(level === levels ? TEXT : '/N Do /N Do'),
      `/Type /XObject /Subtype /Form /BBox [0 0 600 800] /Resources << /Font << /F 5 0 R >> /XObject << /N ${level + 7} 0 R >> >>`,
    )
  const forms = Array.from({ length: levels + 1 }, (_, level) => form(level))
  return onePage(streamOf(Buffer.from('/N Do')), HELVETICA, forms, '/XObject << /N 6 0 R >>')
}

const composite = (encoding: string, toUnicode: string): string =>
  `<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding ${encoding} /ToUnicode ${toUnicode} /DescendantFonts [<< /Type /Font /Subtype /CIDFontType2 /BaseFont /X /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> /DW 1000 >>] >>`

/** Character maps whose ranges hold every number there is. */
export function hugeCharacterMap(): Buffer {
  const ranges = Array.from({ length: 100 }, () => '<00000000> <FFFFFFFF> <0041>').join('\n')
  const map = Buffer.from(
    `/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <00000000> <FFFFFFFF> endcodespacerange 100 beginbfrange\n${ranges}\nendbfrange 100 begincidrange\n${ranges.replaceAll('<0041>', '1')}\nendcidrange endcmap end`,
  )
  const text = streamOf(showing(`<${'00000041'.repeat(2000)}>`))
  return onePage(text, composite('6 0 R', '6 0 R'), [streamOf(map, '/Type /CMap /CMapName /Bomb /UseCMap 6 0 R')])
}

/** A font program that inflates without end, and one of the kind that says it has four thousand million glyphs. */
export function brokenFont(): Buffer {
  const descriptor =
    '<< /Type /FontDescriptor /FontName /X /Flags 4 /FontBBox [0 0 1000 1000] /ItalicAngle 0 /Ascent 800 /Descent -200 /CapHeight 700 /StemV 80 /FontFile2 7 0 R >>'
  const font =
    '<< /Type /Font /Subtype /TrueType /BaseFont /X /FirstChar 0 /LastChar 2000000000 /Widths [500] /FontDescriptor 6 0 R >>'
  return onePage(streamOf(TEXT), font, [
    descriptor,
    streamOf(deflated(1024), '/Filter /FlateDecode /Length1 4294967295'),
  ])
}
