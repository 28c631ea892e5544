import { escapeHtml } from '../html/render-blocks.mjs'
import { officePackage, relations } from './write-docx.mjs'

const R = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'
const [WIDTH, HEIGHT] = [12_192_000, 6_858_000]

const place = (name, { x, y, width, height }) =>
  `<${name}:xfrm><a:off x="${Math.round(x * WIDTH)}" y="${Math.round(y * HEIGHT)}"/><a:ext cx="${Math.round(width * WIDTH)}" cy="${Math.round(height * HEIGHT)}"/></${name}:xfrm>`

const paragraphs = (lines, level = 0) =>
  lines.map((line) => `<a:p><a:pPr lvl="${level}"/><a:r><a:t>${escapeHtml(line)}</a:t></a:r></a:p>`)

const shape = (box, body, kind) =>
  `<p:sp><p:nvSpPr><p:cNvPr id="1" name="x"/><p:nvPr>${kind ? `<p:ph type="${kind}"/>` : ''}</p:nvPr></p:nvSpPr><p:spPr>${place('a', box)}</p:spPr><p:txBody>${body}</p:txBody></p:sp>`

function tableShape(box, { header, rows }) {
  const cell = (text) => `<a:tc><a:txBody>${paragraphs([text])}</a:txBody></a:tc>`
  const row = (cells) => `<a:tr>${cells.map(cell).join('')}</a:tr>`
  return `<p:graphicFrame><p:nvGraphicFramePr><p:cNvPr id="1" name="x"/></p:nvGraphicFramePr>${place('p', box)}<a:graphic><a:graphicData><a:tbl>${[header, ...rows].map(row).join('')}</a:tbl></a:graphicData></a:graphic></p:graphicFrame>`
}

const itemLines = ({ items }, level = 0) =>
  items.flatMap(({ content: [{ text }], list }) => [
    ...paragraphs([text], level),
    ...(list ? itemLines(list, level + 1) : []),
  ])

function shapeOf(block, box) {
  if (block.type === 'table') return tableShape(box, block)
  if (block.type === 'list') return shape(box, itemLines(block).join(''), 'body')
  return shape(box, paragraphs([block.content[0].text]).join(''), block.type === 'heading' ? 'title' : undefined)
}

/**
 * Slides of {block, box} in order of reading; the file has them in another order, as shapes are drawn one over another.
 *
 * @param random shuffles the shapes
 */
export function writePptx(slides, random) {
  const parts = slides.map((placed, index) => {
    const shapes = random.sample(placed, placed.length).map(({ block, box }) => shapeOf(block, box))
    return [
      `ppt/slides/slide${index + 1}.xml`,
      `<p:sld><p:cSld><p:spTree>${shapes.join('')}</p:spTree></p:cSld></p:sld>`,
    ]
  })
  return officePackage('ppt/presentation.xml', {
    'ppt/presentation.xml': `<p:presentation xmlns:r="${R}"><p:sldIdLst>${slides.map((_, index) => `<p:sldId id="${256 + index}" r:id="s${index + 1}"/>`).join('')}</p:sldIdLst></p:presentation>`,
    'ppt/_rels/presentation.xml.rels': relations(
      slides.map((_, index) => [`s${index + 1}`, 'slide', `slides/slide${index + 1}.xml`]),
    ),
    ...Object.fromEntries(parts),
  })
}
