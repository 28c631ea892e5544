import { EngineFault } from '../model/document.js'
import type { OfficePackage } from './office-package.js'
import { mainPart, type Relationship, relationshipsOf } from './relationships.js'
import { builtInKind, kindOfFormat, type NumberKind } from './xlsx-number-format.js'
import { childElements, descendant, parseXml, relationId, scanXml, type XmlElement } from './xml.js'

export interface Workbook {
  /** Those that can be seen, in their order. */
  readonly sheets: readonly { readonly name: string; readonly part: string }[]
  readonly sharedStrings: readonly string[]
  /** What the numbers of a cell are, by the index of its style. */
  readonly numberKinds: readonly NumberKind[]
  readonly startsIn1904: boolean
}

/** @throws EngineFault `broken`, `too_large`, `encrypted` */
export function readWorkbook(pack: OfficePackage): Workbook {
  const part = mainPart(pack) ?? 'xl/workbook.xml'
  const bytes = pack.read(part)
  const root = bytes && parseXml(bytes)
  if (root === undefined) throw notExcel()
  const relationships = relationshipsOf(pack, part)
  const byType = (type: string): Uint8Array | undefined => {
    const related = [...relationships.values()].find((candidate) => candidate.type === type)
    return related && pack.read(related.target)
  }
  return {
    sheets: visibleSheets(root, relationships),
    sharedStrings: sharedStrings(byType('sharedStrings')),
    numberKinds: numberKinds(byType('styles')),
    startsIn1904: /^(?:1|true)$/.test(descendant(root, 'workbookPr')?.attributes.date1904 ?? ''),
  }
}

function visibleSheets(
  workbook: XmlElement,
  relationships: ReadonlyMap<string, Relationship>,
): readonly { readonly name: string; readonly part: string }[] {
  const listed = childElements(descendant(workbook, 'sheets'), 'sheet')
  const sheets = listed.flatMap(({ attributes }) => {
    const part = relationships.get(relationId(attributes) ?? '')?.target
    return part === undefined ? [] : [{ name: attributes.name ?? '', part, state: attributes.state ?? 'visible' }]
  })
  if (sheets.length === 0) throw notExcel()
  return sheets.filter(({ state }) => state === 'visible')
}

function notExcel(): EngineFault {
  return new EngineFault('broken', 'The file is damaged: it is no complete Excel workbook.')
}

function sharedStrings(bytes: Uint8Array | undefined): string[] {
  const strings: string[] = []
  if (bytes === undefined) return strings
  const collector = new StringCollector()
  scanXml(bytes, {
    open: (name) => {
      collector.open(name)
    },
    text: (text) => {
      collector.text(text)
    },
    close: (name) => {
      collector.close(name)
      if (name === 'si') strings.push(collector.take())
    },
  })
  return strings
}

/** Gathers what stands in `t` elements, reading aids (`rPh`) left out: a string may be cut into runs. */
export class StringCollector {
  private collected = ''
  private isText = false
  private isReadingAid = false

  open(name: string): void {
    if (name === 't') this.isText = true
    else if (name === 'rPh') this.isReadingAid = true
  }

  text(text: string): void {
    if (this.isText && !this.isReadingAid) this.collected += text
  }

  close(name: string): void {
    if (name === 't') this.isText = false
    else if (name === 'rPh') this.isReadingAid = false
  }

  /** What was gathered since the last time. */
  take(): string {
    const { collected } = this
    this.collected = ''
    return collected
  }
}

function numberKinds(bytes: Uint8Array | undefined): NumberKind[] {
  const root = bytes && parseXml(bytes)
  const kinds = new Map<string | undefined, NumberKind>()
  for (const format of childElements(descendant(root, 'numFmts'), 'numFmt')) {
    kinds.set(format.attributes.numFmtId, kindOfFormat(format.attributes.formatCode ?? ''))
  }
  const kindOf = ({ attributes: { numFmtId } }: XmlElement): NumberKind =>
    kinds.get(numFmtId) ?? builtInKind(Number(numFmtId ?? 0))
  return childElements(descendant(root, 'cellXfs'), 'xf').map(kindOf)
}
