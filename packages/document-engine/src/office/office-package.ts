import { crc32, inflateRawSync } from 'node:zlib'
import { collapseSpaces } from '../markdown/escape-markdown.js'
import {
  EngineFault,
  type EngineLimits,
  type EngineMetadata,
  type EngineWarning,
  type EngineWarningCode,
  languageTag,
  NO_METADATA,
} from '../model/document.js'
import { childElements, descendant, parseXml, textOf } from './xml.js'
import { brokenZip, partName, zipEntries, type ZipEntry } from './zip-directory.js'

const FILE_NAME = /^[^\s/]{1,200}\.(?:png|jpe?g|gif|bmp|tiff?|svg|emf|wmf|webp|heic)$/i
/** Sentence that Office adds to generated alternative text. */
const MACHINE_NOTE =
  /\s*(?:Description automatically generated(?: with \w+ confidence)?|AI-generated content may be incorrect)\.?\s*$/i

/** Alternative text of a picture; '' where it is only the name of a file. */
export function alternativeText(description: string | null | undefined): string {
  const text = collapseSpaces(description ?? '')
    .replace(MACHINE_NOTE, '')
    .trim()
  return FILE_NAME.test(text) ? '' : text
}

const LOCAL_HEADER = 0x04034b50
const STORED = 0
const DEFLATED = 8

/**
 * The parts of a DOCX, XLSX or PPTX. A part is inflated on demand, within what is left of the limit for all parts, whatever
 * sizes the directory declares; pictures and embedded files are never inflated.
 */
export class OfficePackage {
  private readonly entries: ReadonlyMap<string, ZipEntry>
  private leftBytes: number

  /** @throws EngineFault `broken`, `too_large` */
  constructor(
    private readonly bytes: Uint8Array,
    limits: EngineLimits,
  ) {
    this.entries = zipEntries(bytes)
    this.leftBytes = limits.decodedBytes
  }

  /** Name of a part as the package writes it; undefined when there is no such part. */
  pathOf(name: string): string | undefined {
    return this.entries.get(partName(name))?.path
  }

  /**
   * Undefined when there is no such part.
   *
   * @throws EngineFault `broken`, `too_large`, `encrypted`
   */
  read(name: string): Uint8Array | undefined {
    const entry = this.entries.get(partName(name))
    if (entry === undefined) return undefined
    if (entry.isEncrypted) throw new EngineFault('encrypted', 'The file is protected by a password.')
    if (entry.declaredBytes > this.leftBytes) throw tooLarge()
    const content = this.content(entry)
    if (crc32(content) !== entry.crc32) throw brokenZip()
    this.leftBytes -= content.byteLength
    return content
  }

  private content(entry: ZipEntry): Uint8Array {
    const packed = this.packed(entry)
    if (entry.method === STORED) {
      if (packed.byteLength > this.leftBytes) throw tooLarge()
      return packed
    }
    if (entry.method !== DEFLATED) throw brokenZip()
    try {
      return inflateRawSync(packed, { maxOutputLength: Math.max(1, this.leftBytes) })
    } catch (error) {
      throw isOverflow(error) ? tooLarge() : brokenZip()
    }
  }

  private packed(entry: ZipEntry): Uint8Array {
    const view = new DataView(this.bytes.buffer, this.bytes.byteOffset, this.bytes.byteLength)
    if (entry.offset + 30 > view.byteLength || view.getUint32(entry.offset, true) !== LOCAL_HEADER) throw brokenZip()
    const start = entry.offset + 30 + view.getUint16(entry.offset + 26, true) + view.getUint16(entry.offset + 28, true)
    const end = start + entry.compressedBytes
    if (end > view.byteLength) throw brokenZip()
    return this.bytes.subarray(start, end)
  }
}

function isOverflow(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE'
}

function tooLarge(): EngineFault {
  return new EngineFault('too_large', 'The file is too large when it is unpacked.')
}

export interface Relationship {
  /** Last segment of the type's URI: `slide`, `worksheet`, `hyperlink`, … */
  readonly type: string
  /** Name of a part, or a URL when it is external. */
  readonly target: string
  readonly isExternal: boolean
}

/** Relationships (OPC) of a part by id; those of the package for ''. */
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

/** Main part of the package; undefined when it declares none. */
export function mainPart(pack: OfficePackage): string | undefined {
  for (const { type, target } of relationshipsOf(pack, '').values()) if (type === 'officeDocument') return target
  return undefined
}

/** URLs of external relationships, by id. */
export function linksOf(relationships: ReadonlyMap<string, Relationship>): ReadonlyMap<string, string> {
  const links = new Map<string, string>()
  for (const [id, { isExternal, target }] of relationships) {
    if (isExternal && /^(?:https?:|mailto:)\S\S*$/i.test(target)) links.set(id, target)
  }
  return links
}

/** Resolves a target against the folder of its part, or against the package when it begins with `/`. */
function resolvePart(folder: string, target: string): string {
  const segments: string[] = []
  for (const segment of (target.startsWith('/') ? target : folder + target).split('/')) {
    if (segment === '..') segments.pop()
    else if (segment !== '.' && segment !== '') segments.push(segment)
  }
  return segments.join('/')
}

const LONGEST_CHARACTERS = 2048
/** Default titles that programs write. */
const NO_TITLE = /^(?:powerpoint presentation|presentation title|slide 1|word document|untitled)$/i

/** Title, description and keywords from the core properties. */
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
    language: languageTag(property('language')),
  }
}

/** One line, cut to the length of metadata. */
export function shortLine(text: string): string {
  return collapseSpaces(text).trim().slice(0, LONGEST_CHARACTERS)
}

function propertiesPart(pack: OfficePackage): string {
  for (const { type, target } of relationshipsOf(pack, '').values()) if (type === 'core-properties') return target
  return 'docProps/core.xml'
}

/** The warning that a document lacks so many things, in the words for one and for several; none for zero. */
export function lacking(code: EngineWarningCode, count: number, one: string, several: string): EngineWarning[] {
  return count === 0 ? [] : [{ code, message: count === 1 ? `One ${one}.` : `${count} ${several}.` }]
}
