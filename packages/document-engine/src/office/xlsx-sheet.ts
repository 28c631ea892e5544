import { EngineFault } from '../model/document.js'
import { numberText } from './xlsx-number-format.js'
import { StringCollector, type Workbook } from './xlsx-workbook.js'
import { relationId, scanXml, type XmlElement, type XmlHandlers } from './xml.js'

const MOST_CELLS = 1_000_000

interface SheetCell {
  /** `B7` */
  readonly reference: string
  /** From 0. */
  readonly column: number
  readonly text: string
}

export interface Sheet {
  /** Cells that hold anything, from top to bottom. */
  readonly rows: readonly (readonly SheetCell[])[]
  /** Ids of the relationships that cells are linked by, by references. */
  readonly linkIds: ReadonlyMap<string, string>
}

/**
 * @param takeCharacters told of the length of each text; throws when there were too many
 * @throws EngineFault `broken`, `too_large`
 */
export function readSheet(bytes: Uint8Array, workbook: Workbook, takeCharacters: (count: number) => void): Sheet {
  const scan = new SheetScan(workbook, takeCharacters)
  scanXml(bytes, scan)
  return scan
}

class SheetScan implements Sheet, XmlHandlers {
  readonly rows: SheetCell[][] = []
  readonly linkIds = new Map<string, string>()
  private readonly inline = new StringCollector()
  private cells = 0
  private column = -1
  private cell: XmlElement['attributes'] = {}
  private value = ''
  private isValue = false

  constructor(
    private readonly workbook: Workbook,
    private readonly takeCharacters: (count: number) => void,
  ) {}

  readonly open: XmlHandlers['open'] = (name, attributes) => {
    this.inline.open(name)
    if (name === 'row') this.openRow()
    else if (name === 'c') this.openCell(attributes)
    else if (name === 'v') this.isValue = true
    else if (name === 'hyperlink') this.linkIds.set(attributes.ref ?? '', relationId(attributes) ?? '')
  }

  readonly text: XmlHandlers['text'] = (text) => {
    this.inline.text(text)
    if (this.isValue) this.value += text
  }

  readonly close: XmlHandlers['close'] = (name) => {
    this.inline.close(name)
    if (name === 'v') this.isValue = false
    else if (name === 'c') this.closeCell()
  }

  private openRow(): void {
    this.rows.push([])
    this.column = -1
  }

  private openCell(attributes: XmlElement['attributes']): void {
    this.cell = attributes
    this.column = columnOf(attributes.r) ?? this.column + 1
    this.value = ''
    this.inline.take()
  }

  private closeCell(): void {
    const text = this.cellText()
    if (text === '') return
    this.cells += 1
    if (this.cells > MOST_CELLS) throw new EngineFault('too_large', `A sheet has more than ${MOST_CELLS} cells.`)
    this.takeCharacters(text.length)
    this.rows.at(-1)?.push({ reference: this.cell.r ?? '', column: this.column, text })
  }

  private cellText(): string {
    const { value, workbook } = this
    const { t: type, s: style } = this.cell
    if (type === 's') return workbook.sharedStrings[Number(value)] ?? ''
    if (type === 'inlineStr') return this.inline.take()
    if (type === 'b') return value === '1' || value === 'true' ? 'TRUE' : 'FALSE'
    if (type === 'str' || type === 'e' || type === 'd') return value
    return numberText(value, workbook.numberKinds[Number(style ?? 0)] ?? 'number', workbook.startsIn1904)
  }
}

/** From 0, of a reference such as `AB12`; undefined when it has none, which is allowed. */
function columnOf(reference: string | undefined): number | undefined {
  const letters = /^\$?([a-z]{1,3})/i.exec(reference ?? '')?.[1]
  if (letters === undefined) return undefined
  let column = 0
  for (const letter of letters.toUpperCase()) column = column * 26 + letter.charCodeAt(0) - 64
  return column - 1
}
