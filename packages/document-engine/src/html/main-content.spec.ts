import { describe, expect, it } from '@jest/globals'
import { readTree } from './html-parser.js'
import type { PageBlocks } from './page-blocks.js'
import { textBlocks } from './text-blocks.js'

const blocksOf = (html: string): PageBlocks => textBlocks(readTree(html).body)
const textsOf = (html: string): string[] => blocksOf(html).blocks.map(({ text }) => text)

describe('the blocks of a page', () => {
  it.each([
    ['paragraphs and text between them', 'a <b>b</b><p>c</p> d', ['a b', 'c', 'd']],
    ['cells and list items', '<ul><li>a<li>b</ul><table><tr><td>c<td>d</table>', ['a', 'b', 'c', 'd']],
    ['lines, when an empty one is between them', 'a<br>b<br> <br>c', ['a b', 'c']],
    ['stretches of text that hold blocks', '<span>a<div>b</div>c</span>', ['a', 'b', 'c']],
    ['nothing of what is blank', ' <p> </p>\n<div>&nbsp;</div>', []],
  ])('are %s', (_what, html, expected) => {
    expect(textsOf(html)).toEqual(expected)
  })

  it('know how much of them is linked, strong and hidden', () => {
    const { blocks } = blocksOf(
      '<p>aa <a href=x>bbb</a> <b>c</b></p><p hidden>d</p><div style="display : none"><p>e</div>',
    )
    expect(blocks.map(({ linkedLength, strongLength, links }) => ({ linkedLength, strongLength, links }))).toEqual([
      { linkedLength: 3, strongLength: 1, links: 1 },
      { linkedLength: 0, strongLength: 0, links: 0 },
      { linkedLength: 0, strongLength: 0, links: 0 },
    ])
    expect(blocks.map(({ isHidden }) => isHidden)).toEqual([false, true, true])
  })

  it('count as linked in a link around blocks', () => {
    expect(blocksOf('<a href=x><div>abc</div></a>').blocks[0]?.linkedLength).toBe(3)
  })

  it('add up in every container around them', () => {
    const prose = 'word '.repeat(30).trim()
    const { body, containers } = blocksOf(`<main><p>${prose}</p><p><a href=x>link</a></p></main>`)
    expect(body).toMatchObject({ textLength: prose.length + 4, linkedLength: 4, proseLength: prose.length, blocks: 2 })
    expect(containers.map(({ element }) => element.localName)).toEqual(['body', 'main', 'p', 'p'])
  })

  it('carry the pictures in their text; others stand before the block that follows', () => {
    const { blocks, media } = blocksOf('<p>a <img src=1.png></p><img src=2.png><hr><p>b</p>')
    expect(blocks[0]?.media.map((element) => element.attribute('src'))).toEqual(['1.png'])
    expect(media.map(({ element, before }) => [element.localName, before])).toEqual([
      ['img', 1],
      ['hr', 1],
    ])
  })

  it.each([
    ['takes the place of one without an address', '<img src="data:image/gif;base64,R0">', 2],
    ['is left out after the same in the open', '<img data-src=real.png>', 1],
  ])('a picture for browsers without scripts %s', (_what, placeholder, count) => {
    const { media } = blocksOf(`<figure>${placeholder}<noscript><img src=real.png></noscript></figure>`)
    expect(media).toHaveLength(count)
  })
})
