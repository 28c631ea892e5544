import { type EngineMetadata, NO_METADATA } from '../model/document.js'
import type { OfficePackage } from './office-package.js'
import { relationshipsOf } from './relationships.js'
import { descendant, parseXml, textOf } from './xml.js'

const LONGEST_CHARACTERS = 2048
/** What the programs write themselves when nobody gave a title. */
const NO_TITLE = /^(?:powerpoint presentation|presentation title|slide 1|word document|untitled)$/i

/** Title, description and keywords as the package's core properties hold them. */
export function coreMetadata(pack: OfficePackage): EngineMetadata {
  const bytes = pack.read(propertiesPart(pack))
  const root = bytes && parseXml(bytes)
  const property = (name: string): string => shortLine(textOf(descendant(root, name)))
  const title = property('title')
  return {
    ...NO_METADATA,
    title: NO_TITLE.test(title) ? '' : title,
    description: property('description') || property('subject'),
    keywords: property('keywords'),
  }
}

/** One line, of a length fit for metadata. */
export function shortLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim().slice(0, LONGEST_CHARACTERS)
}

function propertiesPart(pack: OfficePackage): string {
  for (const { type, target } of relationshipsOf(pack, '').values()) if (type === 'core-properties') return target
  return 'docProps/core.xml'
}
