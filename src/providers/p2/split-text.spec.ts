import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { codePoint } from '../../../test/support/arbitraries.js'
import { isSpeakable, textPieces } from './split-text.js'

const MAXIMUM = 1024
const bytesOf = (text: string): number => Buffer.byteLength(text)

/** Fills each piece with as many whole parts as fit; every part fits alone. */
function packed(parts: readonly string[], maximumBytes: number): string[] {
  const pieces: string[] = []
  for (const part of parts) {
    const filled = (pieces.at(-1) ?? '') + part
    if (pieces.length === 0 || bytesOf(filled) > maximumBytes) pieces.push(part)
    else pieces[pieces.length - 1] = filled
  }
  return pieces
}

const word = fc.string({ unit: fc.constantFrom('a', 'b', 'z', 'ä', 'ж', '漢', '한', '9'), minLength: 1, maxLength: 12 })
const wordsOf = (separators: readonly string[], maxLength: number): fc.Arbitrary<string> =>
  fc
    .array(fc.tuple(word, fc.constantFrom(...separators)), { maxLength })
    .chain((pairs) => word.map((last) => pairs.flat().join('') + last))
const listOf = (part: fc.Arbitrary<string>): fc.Arbitrary<string[]> =>
  fc.array(part, { minLength: 1, maxLength: 40, size: 'max' })

/** Everything that has a say in where a text may be parted, and halves of surrogate pairs. */
const anyText = fc.string({
  unit: fc.oneof(
    fc.constantFrom('a', 'b1', '漢', '한', '😀', '👨‍👩‍👧', '🇩🇪', 'e\u0301', '\u0301', '\u200d', '\ufe0f'),
    fc.constantFrom('.', '!', '?', '…', '。', '，', ',', ')', '"', '」', ' ', '  ', '\n', '\r\n', '\u00a0', '$'),
    fc.constantFrom('\ud83d', '\ude00'),
    fc.string({ unit: codePoint, maxLength: 2 }),
  ),
  maxLength: 400,
  size: 'max',
})
const maximumBytes = fc.oneof(fc.integer({ min: 4, max: 40 }), fc.constant(MAXIMUM))

describe('the pieces of a text', () => {
  it('joined are the text, none empty, none too long', () => {
    fc.assert(
      fc.property(anyText, maximumBytes, (text, maximum) => {
        const pieces = textPieces(text, maximum)
        expect(pieces.join('')).toBe(text)
        expect(pieces.filter((piece) => piece === '' || bytesOf(piece) > maximum)).toEqual([])
      }),
      { numRuns: 400 },
    )
  })

  it('never part a surrogate pair', () => {
    fc.assert(
      fc.property(anyText, maximumBytes, (text, maximum) => {
        const codePoints = textPieces(text, maximum).flatMap((piece) => Array.from(piece))
        expect(codePoints).toEqual(Array.from(text))
      }),
    )
  })

  it('never part a grapheme cluster that fits into a piece', () => {
    const segmenter = new Intl.Segmenter('und', { granularity: 'grapheme' })
    const clusters = (text: string): string[] => Array.from(segmenter.segment(text), ({ segment }) => segment)
    fc.assert(
      fc.property(anyText, fc.integer({ min: 30, max: 60 }), (text, maximum) => {
        const whole = clusters(text)
        fc.pre(whole.every((cluster) => bytesOf(cluster) <= maximum))
        expect(textPieces(text, maximum).flatMap(clusters)).toEqual(whole)
      }),
      { numRuns: 400 },
    )
  })

  it('are as many whole sentences as fit', () => {
    const end = fc.constantFrom(
      '. ',
      '! ',
      '? ',
      '… ',
      '?! ',
      '." ',
      '.) ',
      '。',
      '！',
      '？」',
      '；',
      '。”',
      '\n',
      '.\r\n',
      '...\n\n',
    )
    const inside = [' ', ', ', '.5', ':30', ' - ', '，', '\u00a0', '."x', '...']
    const sentence = fc.tuple(wordsOf(inside, 20), end).map((parts) => parts.join(''))
    fc.assert(
      fc.property(listOf(sentence), (sentences) => {
        expect(textPieces(sentences.join(''))).toEqual(packed(sentences, MAXIMUM))
      }),
    )
  })

  it('end with a clause where no sentence ends', () => {
    const end = fc.constantFrom(', ', '; ', ': ', '，', '、', '：', ',\u2002', ',) ')
    const clause = fc.tuple(wordsOf([' ', ',5', ':3'], 20), end).map((parts) => parts.join(''))
    fc.assert(
      fc.property(listOf(clause), (clauses) => {
        expect(textPieces(clauses.join(''))).toEqual(packed(clauses, MAXIMUM))
      }),
    )
  })

  it('end with a word where no clause ends', () => {
    const words = fc.tuple(word, fc.constantFrom(' ', '  ', '\t', '\u3000')).map((parts) => parts.join(''))
    fc.assert(
      fc.property(fc.array(words, { minLength: 1, maxLength: 300, size: 'max' }), (parts) => {
        expect(textPieces(parts.join(''))).toEqual(packed(parts, MAXIMUM))
      }),
    )
  })

  it('end with a whole grapheme cluster where no word ends', () => {
    const cluster = fc.constantFrom('👨‍👩‍👧‍👦', '🇩🇪', 'e\u0301\u0323', '각', 'क्षि', '👍🏽', 'x', '漢')
    fc.assert(
      fc.property(fc.array(cluster, { maxLength: 400, size: 'max' }), (drawn) => {
        // Symbols at the end would share a piece with the last letter.
        const clusters = [...drawn, 'x']
        expect(textPieces(clusters.join(''))).toEqual(packed(clusters, MAXIMUM))
      }),
      { numRuns: 300 },
    )
  })

  it('part a cluster that is longer than a piece between its code points', () => {
    const cluster = `e${'\u0301'.repeat(2000)}`
    expect(textPieces(cluster).map(bytesOf)).toEqual([1023, 1024, 1024, 930])
  })

  it('always say something, as long as no silence in the text is as long as a piece', () => {
    const silence = fc.string({
      unit: fc.constantFrom('.', '!', ',', ' ', '\n', '…', '。', '-', '*', '😀'),
      maxLength: 20,
    })
    const part = fc.tuple(silence, word).map((parts) => parts.join(''))
    fc.assert(
      fc.property(listOf(part), silence, (parts, rest) => {
        for (const piece of textPieces(parts.join('') + rest, 200)) expect(piece).toMatch(/[\p{L}\p{N}]/u)
      }),
      { numRuns: 500 },
    )
  })

  it.each([
    ['marks of every kind far apart', `a. b, c ${'x'.repeat(1200)}`],
    ['long silences', `a${'.'.repeat(5000)}`],
    ['long clusters', `x e${'\u0301'.repeat(900)}`],
  ])('of a long text with %s are not many more than the text fills', (_, unit) => {
    const text = unit.repeat(200)
    expect(textPieces(text).length).toBeLessThan((4 * bytesOf(text)) / MAXIMUM)
  })

  it('share the last word with the punctuation that no longer fits', () => {
    const text = `${'word '.repeat(203)}last!?!?!?!?`
    expect(textPieces(text)).toEqual(['word '.repeat(203), 'last!?!?!?!?'])
  })

  it.each([
    ['of nothing are none', '', []],
    ['of a text that fits are the text', 'Hi. There. ', ['Hi. There. ']],
    ['do not end inside a number', 'It is 3.14159 now', ['It is ', '3.14159 ', 'now']],
    ['do not end between marks and the quote they close', '“Go!” He went', ['“Go!” ', 'He went']],
    ['leave an opening quote to its own sentence', 'Go. "No way"', ['Go. ', '"No way"']],
    ['say something although marks come first', '... abcdefghijk', ['... abcdef', 'ghijk']],
    ['end behind all marks of a run', '说。!说说', ['说。!', '说说']],
    ['leave an opening quote where no space is needed', '说。 "说说说', ['说。 ', '"说说说']],
    ['end with the best mark of a run', 'a.; bb, cdefgh', ['a.; ', 'bb, cdefgh']],
    ['count a lone surrogate as three bytes', '\ud83d\ud83d\ud83d\ud83d', ['\ud83d\ud83d\ud83d', '\ud83d']],
  ])('%s', (_, text, pieces) => {
    expect(textPieces(text, text === 'Hi. There. ' ? 11 : 10)).toEqual(pieces)
  })

  it.each([0, 3, -1, Number.NaN])('cannot be %d bytes long', (maximum) => {
    expect(() => textPieces('text', maximum)).toThrow(RangeError)
  })

  // Whatever is not linear takes minutes here and runs into the time limit.
  it.each(['a', ' ', '.', '。', '?"', 'a,', 'a. ', '\r\n', '\u0301', '\u200d', '🇩🇪', '👨‍👩‍👧', '\ud83d'])(
    'of a megabyte of %j come in linear time',
    (unit) => {
      const text = unit.repeat(Math.ceil(1_000_000 / unit.length))
      const pieces = textPieces(text)
      expect(pieces.join('') === text).toBe(true)
      expect(pieces.length).toBeLessThan((1.1 * bytesOf(text)) / MAXIMUM)
    },
  )
})

describe('a piece', () => {
  it.each(['a', '...a', '7', '漢', 'ß', '€', '٣', 'ⅷ', '½'])('with %j can be spoken', (piece) => {
    expect(isSpeakable(piece)).toBe(true)
  })

  it.each(['', ' ', '\n', '...', '?!', '。', '😀', '---', '***', '\u0301', '\ud83d', '%', '“”'])(
    'of %j alone cannot',
    (piece) => {
      expect(isSpeakable(piece)).toBe(false)
    },
  )
})
