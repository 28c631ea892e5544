import { beforeAll, describe, expect, it } from '@jest/globals'
import { Document, FootnoteReferenceRun, HeadingLevel, Packer, Paragraph, Table, TableCell, TableRow } from 'docx'
import fc from 'fast-check'
import { zipSync } from 'fflate'
import {
  presentationFile,
  slideParagraph,
  slideShape,
  workbookFile,
  zipOf,
} from '../../../../test/support/office-files.js'
import { documentKind } from '../document-kind.js'
import { type DocumentKind, EngineFault, type EngineInput, type EngineLimits } from '../model/document.js'
import { readDocx } from './docx.js'
import { OfficePackage } from './office-package.js'
import { readPptx } from './pptx.js'
import { readXlsx } from './xlsx.js'

const LIMITS = { pages: 500, decodedBytes: 1_000_000 }

const open = (bytes: Uint8Array): OfficePackage => new OfficePackage(bytes, LIMITS)
const textOf = (bytes: Uint8Array, name: string): string | undefined => {
  const content = open(bytes).read(name)
  return content && Buffer.from(content).toString()
}

function faultOf(action: () => unknown): string {
  try {
    action()
  } catch (error) {
    if (error instanceof EngineFault) return error.fault
    throw error
  }
  return 'none'
}

/** The archive with numbers written over, at offsets from the only entry of its directory or from the end record. */
function patched(bytes: Uint8Array, where: 'entry' | 'end', offset: number, value: number, size: 2 | 4): Uint8Array {
  const copy = Buffer.from(bytes)
  const signature = where === 'entry' ? 0x02014b50 : 0x06054b50
  const position = copy.indexOf(Buffer.from(Uint32Array.of(signature).buffer))
  if (size === 2) copy.writeUInt16LE(value, position + offset)
  else copy.writeUInt32LE(value, position + offset)
  return new Uint8Array(copy)
}

describe('the parts of an office file', () => {
  it('are found without regard to case, to `\\` and to a leading `/`', () => {
    const bytes = zipOf({ '[Content_Types].xml': 'types', 'Word\\Document.XML': 'text' })
    expect(textOf(bytes, '/word/document.xml')).toBe('text')
    expect(open(bytes).pathOf('[content_types].xml')).toBe('[Content_Types].xml')
    expect(textOf(bytes, 'other')).toBeUndefined()
  })

  it('may be stored, and may have a comment and rubbish behind them', () => {
    const bytes = zipSync({ a: Buffer.from('stored') }, { level: 0, comment: 'hello' })
    expect(textOf(new Uint8Array([...bytes, 13, 10]), 'a')).toBe('stored')
  })

  it('that climb out of the package are not there', () => {
    expect(textOf(zipOf({ '../../etc/passwd': 'x', b: 'y' }), '../../etc/passwd')).toBeUndefined()
  })

  it('of one name are the last of them', () => {
    const bytes = Buffer.from(zipOf({ abcd: 'first', efgh: 'second' }))
    for (let at = bytes.indexOf('efgh'); at !== -1; at = bytes.indexOf('efgh', at)) bytes.write('abcd', at)
    expect(textOf(new Uint8Array(bytes), 'abcd')).toBe('second')
  })
})

describe('an archive that lies', () => {
  const bomb = zipOf({ a: new Uint8Array(50_000_000) })

  it('is refused when what comes out is more than the limit', () => {
    expect(faultOf(() => open(bomb).read('a'))).toBe('too_large')
  })

  it('is refused when it declares little and gives much, before much is given', () => {
    const liar = patched(bomb, 'entry', 24, 100, 4)
    const before = process.memoryUsage().arrayBuffers
    expect(faultOf(() => open(liar).read('a'))).toBe('too_large')
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(10_000_000)
  })

  it('is refused when it declares 4 GB', () => {
    expect(faultOf(() => open(patched(zipOf({ a: 'x' }), 'entry', 24, 0xfffffffe, 4)).read('a'))).toBe('too_large')
  })

  it('is refused when its parts together are more than the limit, however often one is read', () => {
    const pack = open(zipOf({ a: new Uint8Array(600_000) }))
    expect(pack.read('a')?.length).toBe(600_000)
    expect(faultOf(() => pack.read('a'))).toBe('too_large')
  })

  it('is refused when it declares too many entries', () => {
    expect(faultOf(() => open(patched(zipOf({ a: 'x' }), 'end', 10, 65_000, 2)))).toBe('too_large')
  })

  it('is refused when its ZIP64 records declare a million entries', () => {
    const end = Buffer.alloc(56)
    end.writeUInt32LE(0x06064b50, 0)
    end.writeBigUInt64LE(1_000_000n, 32)
    const locator = Buffer.alloc(20)
    locator.writeUInt32LE(0x07064b50, 0)
    const last = Buffer.alloc(22)
    last.writeUInt32LE(0x06054b50, 0)
    last.writeUInt16LE(0xffff, 10)
    expect(faultOf(() => open(new Uint8Array(Buffer.concat([end, locator, last]))))).toBe('too_large')
  })

  it.each([
    ['declares more entries than it has', (): Uint8Array => patched(zipOf({ a: 'x' }), 'end', 10, 7, 2)],
    ['has no directory where it says', (): Uint8Array => patched(zipOf({ a: 'x' }), 'end', 16, 3, 4)],
    ['has a directory beyond its end', (): Uint8Array => patched(zipOf({ a: 'x' }), 'end', 16, 0xfffffff0, 4)],
    ['has a part beyond its end', (): Uint8Array => patched(zipOf({ a: 'x' }), 'entry', 42, 0xfffffff0, 4)],
    ['has a part longer than itself', (): Uint8Array => patched(zipOf({ a: 'x' }), 'entry', 20, 0xfffff, 4)],
    ['has another checksum', (): Uint8Array => patched(zipOf({ a: 'x' }), 'entry', 16, 7, 4)],
    ['packs by an unknown method', (): Uint8Array => patched(zipOf({ a: 'x' }), 'entry', 10, 12, 2)],
    ['is no archive at all', (): Uint8Array => new Uint8Array(100)],
    ['is shorter than any', (): Uint8Array => new Uint8Array(5)],
  ])('is damaged when it %s', (_name, bytes) => {
    expect(faultOf(() => open(bytes()).read('a'))).toBe('broken')
  })

  it('is protected when a part is encrypted', () => {
    expect(faultOf(() => open(patched(zipOf({ a: 'x' }), 'entry', 8, 1, 2)).read('a'))).toBe('encrypted')
  })
})

const READERS: Partial<Record<DocumentKind, (input: EngineInput, limits: EngineLimits) => unknown>> = {
  docx: readDocx,
  xlsx: readXlsx,
  pptx: readPptx,
}

/** 'read', or the fault of the document; anything else fails the test. */
async function outcomeOf(bytes: Uint8Array): Promise<string> {
  try {
    const input = { bytes, contentType: '', name: '', baseUrl: '' }
    await READERS[documentKind(input)]?.(input, { ...LIMITS, decodedBytes: 2_000_000 })
    return 'read'
  } catch (error) {
    if (error instanceof EngineFault) return error.fault
    throw error
  }
}

async function wordSample(): Promise<Uint8Array> {
  const table = new Table({ rows: [new TableRow({ children: [new TableCell({ children: [new Paragraph('x')] })] })] })
  const children = [
    new Paragraph({ text: 'Title', heading: HeadingLevel.TITLE }),
    new Paragraph({ children: [new FootnoteReferenceRun(1)] }),
    new Paragraph({ text: 'item', bullet: { level: 0 } }),
    table,
  ]
  const document = new Document({ sections: [{ children }], footnotes: { 1: { children: [new Paragraph('note')] } } })
  return new Uint8Array(await Packer.toBuffer(document))
}

const samples = new Map<string, Uint8Array>([
  ['workbook', workbookFile([{ name: 'S', content: '<sheetData><row><c r="A1"><v>1</v></c></row></sheetData>' }])],
  ['presentation', presentationFile([{ shapes: slideShape(slideParagraph('x'), 'body') }])],
])

beforeAll(async () => {
  samples.set('document', await wordSample())
})

describe.each(['document', 'workbook', 'presentation'])('a damaged %s', (name) => {
  const sample = (): Uint8Array => samples.get(name) ?? new Uint8Array()

  it('is a sound file before it is damaged', async () => {
    expect(await outcomeOf(sample())).toBe('read')
  })

  it('cut off anywhere is broken', async () => {
    for (let sixteenth = 1; sixteenth < 16; sixteenth += 1) {
      expect(await outcomeOf(sample().subarray(0, Math.floor((sample().length * sixteenth) / 16)))).toBe('broken')
    }
  })

  it('with bits flipped is read or refused, never a failure of ours', async () => {
    const flips = fc.array(fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.integer({ min: 0, max: 7 })), {
      minLength: 1,
      maxLength: 8,
    })
    await fc.assert(
      fc.asyncProperty(flips, async (places) => {
        const bytes = Uint8Array.from(sample())
        for (const [place, bit] of places) {
          const index = Math.min(bytes.length - 1, Math.floor(place * bytes.length))
          bytes[index] = (bytes[index] ?? 0) ^ (1 << bit)
        }
        expect(await outcomeOf(bytes)).toMatch(/^(?:read|broken|unsupported|too_large|encrypted)$/)
      }),
      { numRuns: 150 },
    )
  })
})

describe('parts of an office file that hold anything', () => {
  const noise = fc.array(
    fc
      .constantFrom(
        '<row>',
        '<c t="s" r="ZZZ9">',
        '<v>9</v>',
        '</c>',
        '</row>',
        '<a:p>',
        '<a:t>x</a:t>',
        '</a:p>',
        '<p:ph type="body"/>',
      )
      .chain((piece) => fc.constantFrom(piece, piece.slice(0, 3), `${piece}&#0;&lt;&bad;`)),
    { maxLength: 30 },
  )

  it('are read or refused', async () => {
    await fc.assert(
      fc.asyncProperty(noise, async (pieces) => {
        const content = pieces.join('')
        const workbook = workbookFile([{ name: 'S', content }], { sharedStrings: content, styles: content })
        const presentation = presentationFile([{ shapes: content }, { shapes: slideShape(content, 'body') }])
        expect(await outcomeOf(workbook)).toBe('read')
        expect(await outcomeOf(presentation)).toBe('read')
      }),
      { numRuns: 60 },
    )
  })
})
