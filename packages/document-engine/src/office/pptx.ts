import { readTree } from '../html/html-parser.js'
import { htmlToMarkdown } from '../markdown/html-to-markdown.js'
import { EngineFault, type EngineInput, type EngineLimits, type EngineOutput } from '../model/document.js'
import { coreMetadata, shortLine } from './core-properties.js'
import { OfficePackage } from './office-package.js'
import { type LayoutModels, layoutModels, notesHtml, slideHtml } from './pptx-slide.js'
import { linksOf, mainPart, relationshipsOf } from './relationships.js'
import { childElements, descendant, parseXml, relationId, type XmlElement } from './xml.js'

/**
 * A PowerPoint presentation: its slides in the order of the show, hidden ones left out, each but the first after a line
 * `<!-- slide N -->`, with its notes.
 *
 * @throws EngineFault `broken`, `too_large`, `encrypted`
 */
export function readPptx(input: EngineInput, limits: EngineLimits): EngineOutput {
  const pack = new OfficePackage(input.bytes, limits)
  const layouts = new Map<string, LayoutModels>()
  const slides = slideParts(pack).flatMap((part) => {
    const markdown = slideMarkdown(pack, part, layouts)
    return markdown === undefined ? [] : [markdown]
  })
  const marked = slides.map((slide, index) => (index === 0 ? slide : `<!-- slide ${index + 1} -->\n\n${slide}`))
  const metadata = coreMetadata(pack)
  const title = metadata.title || shortLine(/^## (.+)/.exec(slides[0] ?? '')?.[1] ?? '')
  const isEmpty = slides.every((slide) => slide === '')
  const markdown = isEmpty
    ? ''
    : `${marked
        .map((slide) => slide.trim())
        .join('\n\n')
        .trim()}\n`
  return { kind: 'pptx', metadata: { ...metadata, title }, html: '', markdown, pages: Math.max(1, slides.length) }
}

function slideParts(pack: OfficePackage): string[] {
  const part = mainPart(pack) ?? 'ppt/presentation.xml'
  const root = partRoot(pack, part)
  if (root === undefined) throw new EngineFault('broken', 'The file is damaged: it is no complete presentation.')
  const relationships = relationshipsOf(pack, part)
  return childElements(descendant(root, 'sldIdLst'), 'sldId').flatMap(({ attributes }) => {
    const related = relationships.get(relationId(attributes) ?? '')
    return related === undefined ? [] : [related.target]
  })
}

/** Undefined for a slide that is hidden or missing. */
function slideMarkdown(pack: OfficePackage, part: string, layouts: Map<string, LayoutModels>): string | undefined {
  const root = partRoot(pack, part)
  if (root === undefined || /^(?:0|false)$/.test(root.attributes.show ?? '')) return undefined
  const relationships = relationshipsOf(pack, part)
  const target = (type: string): string => [...relationships.values()].find((one) => one.type === type)?.target ?? ''
  const layoutPart = target('slideLayout')
  const models = layouts.get(layoutPart) ?? layoutModels(partRoot(pack, layoutPart))
  layouts.set(layoutPart, models)
  const html = slideHtml(root, {
    models,
    links: linksOf(relationships),
    related: (id) => partRoot(pack, relationships.get(id)?.target ?? ''),
  })
  return htmlToMarkdown(readTree(html + notesHtml(partRoot(pack, target('notesSlide')))).body, { baseUrl: '' })
}

function partRoot(pack: OfficePackage, part: string): XmlElement | undefined {
  const bytes = pack.read(part)
  return bytes && parseXml(bytes)
}
