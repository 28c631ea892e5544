import { beforeAll, describe, expect, it } from '@jest/globals'
import { Document, FootnoteReferenceRun, HeadingLevel, Packer, Paragraph, Table, TableCell, TableRow } from 'docx'
import fc from 'fast-check'
import { presentationFile, slideParagraph, slideShape, workbookFile } from '../../../../test/support/office-files.js'
import { documentKind } from '../document-kind.js'
import { type DocumentKind, EngineFault, type EngineInput, type EngineLimits } from '../model/document.js'
import { readDocx } from './docx.js'
import { readPptx } from './pptx.js'
import { readXlsx } from './xlsx.js'

const LIMITS = { pages: 500, decodedBytes: 2_000_000 }

const READERS: Partial<Record<DocumentKind, (input: EngineInput, limits: EngineLimits) => unknown>> = {
  docx: readDocx,
  xlsx: readXlsx,
  pptx: readPptx,
}

/** 'read', or the fault of the document; anything else fails the test. */
async function outcomeOf(bytes: Uint8Array): Promise<string> {
  try {
    const input = { bytes, contentType: '', name: '', baseUrl: '' }
    await READERS[documentKind(input)]?.(input, LIMITS)
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
