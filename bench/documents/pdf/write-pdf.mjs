import PDFDocument from 'pdfkit'
import { plain } from '../text/blocks.mjs'
import { runningHeads } from './running-heads.mjs'
import { Typesetter } from './typesetter.mjs'

/** @returns {Promise<Buffer>} the document set in `style`: the same bytes for the same blocks. */
export function writePdf(blocks, style) {
  const document = new PDFDocument({
    size: style.pageSize,
    margin: 0,
    autoFirstPage: false,
    bufferPages: true,
    info: { Title: plain(blocks[0].content), CreationDate: new Date(0) },
  })
  const bytes = new Promise((resolve, reject) => {
    const parts = []
    document.on('data', (part) => parts.push(part))
    document.on('end', () => resolve(Buffer.concat(parts)))
    document.on('error', reject)
  })
  const typesetter = new Typesetter(document, style)
  typesetter.inFront = true
  blocks.forEach((block, index) => {
    if (index === 2 || (index > 0 && block.type !== 'paragraph')) {
      if (typesetter.inFront) typesetter.flow.startColumns(style.columns)
      typesetter.inFront = false
    }
    typesetter[block.type](block)
  })
  runningHeads(document, typesetter.ink, style, plain(blocks[0].content))
  document.end()
  return bytes
}
