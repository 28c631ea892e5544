import { strToU8 } from 'fflate'
import { wordFile, wordParagraph } from '../../support/office-files.js'
import { pdfOf } from '../../support/pdf-files.js'
import type { Random } from '../random.js'
import { Turns } from '../turns.js'

/** A document as a caller uploads it. */
export interface SoakFile {
  readonly bytes: Uint8Array
  readonly contentType: string
}

const BROKEN_EACH = 8
const MOST_ROWS = 500
const PDF = 'application/pdf'
const WORD = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'

const SENTENCE = 'A kettle is a vessel in which water is brought to the boil.'
/** Each file another one: those that are known already are not read again. */
const sentenceOf = (random: Random): string => `${SENTENCE} Number ${Math.floor(random.next() * 1e9)}.`
const wordOf = (sentence: string): Uint8Array => wordFile(wordParagraph(sentence).repeat(40))
const pdfWith = (sentence: string): Uint8Array =>
  pdfOf({ pages: [{ content: `BT /F1 12 Tf 50 700 Td (${sentence}) Tj ET` }] })
const wordDocument = wordOf(SENTENCE)

/** Files that no reader can make anything of. */
const BROKEN: readonly SoakFile[] = [
  // Cut: the directory of an archive stands at its end.
  { bytes: wordDocument.subarray(0, wordDocument.length / 2), contentType: WORD },
  { bytes: strToU8('%PDF-1.7\nnothing of what a document needs follows\n%%EOF\n'), contentType: PDF },
  // Of no kind that is read.
  { bytes: Uint8Array.from({ length: 2048 }, (_, at) => (at * 131) % 256), contentType: 'application/octet-stream' },
]

/** Tables, PDFs and Word documents in turn, and among them some that are broken. */
export class SoakFiles {
  private readonly broken = new Turns(BROKEN, BROKEN_EACH)
  private readonly sound = new Turns(
    [
      (random: Random) => ({ bytes: tableOf(random), contentType: 'text/csv' }),
      (random: Random) => ({ bytes: pdfWith(sentenceOf(random)), contentType: PDF }),
      (random: Random) => ({ bytes: wordOf(sentenceOf(random)), contentType: WORD }),
    ],
    1,
  )

  next(random: Random): SoakFile {
    const file = this.broken.next() ?? this.sound.next()?.(random)
    if (file === undefined) throw new Error('there is no file')
    return file
  }
}

const tableOf = (random: Random): Uint8Array => {
  const row = `kettle,${Math.floor(random.next() * 1e9)}\n`
  return strToU8(`name,number\n${row.repeat(Math.ceil(random.between(1, MOST_ROWS)))}`)
}
