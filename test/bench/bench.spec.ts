import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import {
  headingCounts,
  headingF1,
  htmlText,
  itemCounts,
  pairedTables,
  type ScoredBlock,
  shingleScore,
  shingleShares,
  tableSimilarity,
  textSimilarity,
  type Tree,
  treeDistance,
  wordF1,
} from '../support/bench-scripts.js'

const heading = (text: string, level = 2): ScoredBlock => ({ type: 'heading', level, text })
const item = (text: string, depth = 1): ScoredBlock => ({ type: 'item', depth, ordered: false, text })
const leaf = (label: string, ...children: Tree[]): Tree => ({ label, children })
const unlike = (one: Tree, other: Tree): number => (one.label === other.label ? 0 : 1)

describe('F1 over shingles of four words', () => {
  it('is the harmonic mean of the mean precision and the mean recall', () => {
    // Of two shingles each, one is shared: precision and recall are a half; the second page is read in full.
    const pages = [shingleShares('a b c d e', 'a b c d x'), shingleShares('one two three four', 'one, two: three four')]
    expect(pages[0]).toEqual({ right: 1 / 3, wrong: 1 / 3, missing: 1 / 3 })
    expect(shingleScore(pages)).toEqual({ precision: 0.75, recall: 0.75, f1: 0.75 })
  })

  it('takes a text of fewer than four words as one shingle', () => {
    expect(shingleShares('two words', 'two words')).toEqual({ right: 1, wrong: 0, missing: 0 })
  })

  it('leaves a page that was read as empty out of the precision, not out of the recall', () => {
    const pages = [shingleShares('a b c d', ''), shingleShares('e f g h', 'e f g h')]
    expect(shingleScore(pages)).toMatchObject({ precision: 1, recall: 0.5 })
  })

  it('counts a repeated shingle as often as it stands there', () => {
    expect(shingleShares('a a a a a', 'a a a a')).toEqual({ right: 0.5, wrong: 0, missing: 0.5 })
  })
})

describe('F1 over words', () => {
  it('ignores case and order', () => {
    expect(wordF1('One two THREE', 'three one two')).toBe(1)
  })

  it('weighs what is wrong and what is missing', () => {
    expect(wordF1('a b c d', 'a b x')).toBeCloseTo((2 * (2 / 3) * 0.5) / (2 / 3 + 0.5))
  })

  it.each([
    ['', '', 1],
    ['word', '', 0],
    ['', 'word', 0],
  ])('of %j read as %j is %d', (truth, read, expected) => {
    expect(wordF1(truth, read)).toBe(expected)
  })
})

describe('text similarity', () => {
  it('counts words and marks in the same order, from both sides', () => {
    expect(textSimilarity('one two, three', 'one two three')).toBeCloseTo(6 / 7)
    expect(textSimilarity('a b c d', 'c d a b')).toBe(0.5)
  })

  it('takes scripts without blanks by their characters', () => {
    expect(textSimilarity('图书馆目录', '图书馆目标')).toBeCloseTo(0.8)
  })

  it('is 1 for the same text however it is broken into lines, and less for any other', () => {
    const words = fc.array(fc.stringMatching(/^[a-d]{1,3}$/), { minLength: 1, maxLength: 30 })
    fc.assert(
      fc.property(words, words, (one, other) => {
        expect(textSimilarity(one.join(' '), one.join('\n  '))).toBe(1)
        const similarity = textSimilarity(one.join(' '), other.join(' '))
        expect(similarity).toBeCloseTo(textSimilarity(other.join(' '), one.join(' ')))
        expect(similarity === 1).toBe(one.join(' ') === other.join(' '))
      }),
    )
  })
})

describe('F1 of headings', () => {
  it('needs the words and, as a second figure, the level', () => {
    const counts = headingCounts(
      [heading('One Thing', 1), heading('Two')],
      [heading('one thing!', 2), heading('Other')],
    )
    expect(headingF1([counts])).toBe(0.5)
    expect(headingF1([counts], 'matchedWithLevel')).toBe(0)
  })

  it('counts a heading that stands there twice as two', () => {
    expect(headingCounts([heading('Same'), heading('Same')], [heading('Same')])).toMatchObject({ truth: 2, matched: 1 })
  })
})

describe('list item recall', () => {
  it('finds each item once, with or without its marker, and tells its depth', () => {
    const truth = [item('First of all the things'), item('Second of the things', 2), item('Third')]
    const read = [item('Second of the things', 1), item('1. First of all the things'), item('Other')]
    expect(itemCounts(truth, read)).toEqual({ truth: 3, matched: 2, matchedWithDepth: 1, spurious: 1 })
  })

  it('does not take a joined pair of items for one of them', () => {
    expect(
      itemCounts([item('one two three'), item('four five six')], [item('one two three four five six')]),
    ).toMatchObject({ matched: 0 })
  })
})

describe('distance of trees', () => {
  it('counts nodes taken out, put in and renamed', () => {
    const one = leaf('f', leaf('d', leaf('a'), leaf('c', leaf('b'))), leaf('e'))
    const other = leaf('f', leaf('c', leaf('d', leaf('a'), leaf('b'))), leaf('e'))
    expect(treeDistance(one, other, unlike)).toBe(2)
  })

  it('is what trying every way out gives', () => {
    const nodes = fc.array(fc.record({ label: fc.constantFrom('a', 'b'), parent: fc.nat() }), { maxLength: 6 })
    const trees = nodes.map((list) => {
      const made = [leaf('a')]
      for (const { label, parent } of list) {
        const node = leaf(label)
        made[parent % made.length]?.children.push(node)
        made.push(node)
      }
      return made[0] ?? leaf('a')
    })
    fc.assert(
      fc.property(trees, trees, (one, other) => {
        expect(treeDistance(one, other, unlike)).toBe(slowDistance([one], [other]))
      }),
    )
  })
})

const size = (forest: Tree[]): number => forest.reduce((sum, { children }) => sum + 1 + size(children), 0)

/** By definition: the rightmost tree loses its root on one side or the other, or both roots stand for each other. */
function slowDistance(one: Tree[], other: Tree[]): number {
  const [last, otherLast] = [one.at(-1), other.at(-1)]
  if (last === undefined || otherLast === undefined) return size(one) + size(other)
  const [rest, otherRest] = [one.slice(0, -1), other.slice(0, -1)]
  return Math.min(
    slowDistance([...rest, ...last.children], other) + 1,
    slowDistance(one, [...otherRest, ...otherLast.children]) + 1,
    slowDistance(rest, otherRest) + slowDistance(last.children, otherLast.children) + unlike(last, otherLast),
  )
}

describe('similarity of tables', () => {
  const table = [
    ['Name', 'Count'],
    ['Kettle', '12'],
  ]

  it('is 1 for the same cells', () => {
    expect(
      tableSimilarity(table, [
        ['Name ', 'Count'],
        ['Kettle', '12'],
      ]),
    ).toBe(1)
  })

  it('loses the share of a cell that was read wrong', () => {
    // Seven nodes; half of the characters of one cell are wrong.
    expect(
      tableSimilarity(table, [
        ['Name', 'Count'],
        ['Kettle', '13'],
      ]),
    ).toBeCloseTo(1 - 0.5 / 7)
  })

  it('loses a row that is missing, with its cells', () => {
    expect(tableSimilarity(table, [['Name', 'Count']])).toBeCloseTo(1 - 3 / 7)
  })

  it('pairs tables in their order and counts the ones that are none', () => {
    const other = [
      ['x', 'y'],
      ['z', '1'],
    ]
    expect(pairedTables([table, other], [other, [['q']]])).toMatchObject({ similarities: [0, 1], spurious: 1 })
    expect(pairedTables([table], [other, table])).toEqual({ similarities: [1], spurious: 1 })
    expect(pairedTables([table], [])).toEqual({ similarities: [0], spurious: 0 })
  })
})

describe('the text of HTML', () => {
  it('sets blocks apart, joins what stands in a line, and leaves out what is not shown', () => {
    const text = htmlText('<p>O<b>n</b>e</p><p>Two<br>Three &amp; four</p><script>no()</script><style>p{}</style>')
    expect(text.split(/\s*\n\s*/).filter(Boolean)).toEqual(['One', 'Two', 'Three & four'])
  })
})
