/** An object of a PDF: its dictionary or value as text, or that and a stream. */
export type PdfObject = string | { readonly dictionary: string; readonly stream: Uint8Array }

/** A whole file; object n of the list has the number n + 1, and the first is the catalogue. */
export function pdfFile(objects: readonly PdfObject[]): Buffer {
  const parts: Uint8Array[] = [Buffer.from('%PDF-1.7\n%\u00e2\u00e3\u00cf\u00d3\n', 'latin1')]
  let length = parts[0]?.length ?? 0
  const add = (part: Uint8Array): void => {
    parts.push(part)
    length += part.length
  }
  const offsets: string[] = []
  for (const [index, object] of objects.entries()) {
    offsets.push(`${String(length).padStart(10, '0')} 00000 n \n`)
    if (typeof object === 'string') add(Buffer.from(`${index + 1} 0 obj\n${object}\nendobj\n`, 'latin1'))
    else {
      add(Buffer.from(`${index + 1} 0 obj\n${object.dictionary}\nstream\n`, 'latin1'))
      add(object.stream)
      add(Buffer.from('\nendstream\nendobj\n', 'latin1'))
    }
  }
  const table = `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${offsets.join('')}`
  const trailer = `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${length}\n%%EOF\n`
  return Buffer.concat([...parts, Buffer.from(table + trailer, 'latin1')])
}

/** A stream with the length it has. */
export const streamOf = (stream: Uint8Array, dictionary = ''): PdfObject => ({
  dictionary: `<< /Length ${stream.length} ${dictionary} >>`,
  stream,
})

/** One page: objects 1 to 3 are catalogue, pages and page, 4 is its content, 5 its font; `others` are 6 and up. */
export function onePage(
  content: PdfObject,
  font = HELVETICA,
  others: readonly PdfObject[] = [],
  resources = '',
): Buffer {
  return pdfFile([
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R /Resources << /Font << /F 5 0 R >> ${resources} >> >>`,
    content,
    font,
    ...others,
  ])
}

export const HELVETICA = '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>'

/** Content that shows one line. */
export const showing = (text: string): Buffer => Buffer.from(`BT /F 12 Tf 50 700 Td ${text} Tj ET`, 'latin1')
