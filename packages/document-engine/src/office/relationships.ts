import type { OfficePackage } from './office-package.js'
import { childElements, parseXml } from './xml.js'

export interface Relationship {
  /** Last segment of the type's URI: `slide`, `worksheet`, `hyperlink`, … */
  readonly type: string
  /** Name of a part, or a URL when it is external. */
  readonly target: string
  readonly isExternal: boolean
}

/** OPC: the relationships of a part by their ids; of the package itself for ''. */
export function relationshipsOf(pack: OfficePackage, part: string): ReadonlyMap<string, Relationship> {
  const folder = part.slice(0, part.lastIndexOf('/') + 1)
  const bytes = pack.read(`${folder}_rels/${part.slice(folder.length)}.rels`)
  const relationships = new Map<string, Relationship>()
  for (const { attributes } of childElements(bytes && parseXml(bytes), 'Relationship')) {
    const isExternal = attributes.TargetMode === 'External'
    const target = attributes.Target ?? ''
    relationships.set(attributes.Id ?? '', {
      type: (attributes.Type ?? '').split('/').at(-1) ?? '',
      target: isExternal ? target : resolvePart(folder, target),
      isExternal,
    })
  }
  return relationships
}

/** The part that the package names as its document; undefined when it names none. */
export function mainPart(pack: OfficePackage): string | undefined {
  for (const { type, target } of relationshipsOf(pack, '').values()) if (type === 'officeDocument') return target
  return undefined
}

/** Targets of external relationships that a reader can follow, by their ids. */
export function linksOf(relationships: ReadonlyMap<string, Relationship>): ReadonlyMap<string, string> {
  const links = new Map<string, string>()
  for (const [id, { isExternal, target }] of relationships) {
    if (isExternal && /^(?:https?:|mailto:)\S+$/i.test(target)) links.set(id, target)
  }
  return links
}

/** A target stands against the folder of the part that names it, or against the package when it begins with `/`. */
function resolvePart(folder: string, target: string): string {
  const segments: string[] = []
  for (const segment of (target.startsWith('/') ? target : folder + target).split('/')) {
    if (segment === '..') segments.pop()
    else if (segment !== '.' && segment !== '') segments.push(segment)
  }
  return segments.join('/')
}
