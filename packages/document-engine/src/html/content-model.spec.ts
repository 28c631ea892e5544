import { describe, expect, it } from '@jest/globals'
import { FEATURES } from './block-features.js'
import { MODEL_FEATURES, TREES } from './content-model.js'
import { subjectsOf } from './feature-subject.js'
import { readTree } from './html-parser.js'
import { pageTraits } from './page-traits.js'
import { textBlocks } from './text-blocks.js'

describe('the model of content', () => {
  it('was made for the features that blocks are described by, in their order', () => {
    expect(FEATURES.map(([name]) => name)).toEqual(MODEL_FEATURES)
  })

  it('asks for features that there are', () => {
    const asked = TREES.flatMap((tree) => [...tree.matchAll(/(\d+)</g)].map(([, feature]) => Number(feature)))
    expect(Math.max(...asked)).toBeLessThan(FEATURES.length)
  })

  it('is made of whole trees: one leaf more than splits', () => {
    for (const tree of TREES) {
      const entries = tree.split(' ')
      const splits = entries.filter((entry) => entry.includes('<'))
      expect(entries).toHaveLength(splits.length * 2 + 1)
    }
  })
})

describe('the features of a block', () => {
  it.each([
    ['a page of one word', 'x'],
    ['a page of links', '<a href=a>one</a><p><a href=b>two</a>'],
    ['text in no container of its own', 'a<div>b<div>c</div>d</div>e'],
    ['a page of numbers', '<table><tr><td>1<td>2</table>'],
  ])('are numbers for %s', (_what, html) => {
    const tree = readTree(html)
    const traits = pageTraits(tree, textBlocks(tree.body))
    for (const subject of subjectsOf(traits)) {
      const values = FEATURES.map(([name, value]) => [name, value(subject)] as const)
      expect(values.filter(([, value]) => !Number.isFinite(value))).toEqual([])
    }
  })
})
