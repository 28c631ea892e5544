import { describe, expect, it } from '@jest/globals'
import { readTree } from './html-parser.js'
import { writeHtml } from './html-writer.js'
import { contentTree } from './main-content.js'
import { stateText, structuredText } from './page-data.js'
import { type PageBlocks, textBlocks } from './text-blocks.js'

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

  it('count as linked in a link around blocks, and not in an anchor that links to nothing', () => {
    expect(blocksOf('<a href=x><div>abc</div></a>').blocks[0]?.linkedLength).toBe(3)
    expect(blocksOf('<a id=x><div>abc</div></a>').blocks[0]?.linkedLength).toBe(0)
    expect(blocksOf('<p><a name=x>abc</a> d</p>').blocks[0]).toMatchObject({ linkedLength: 0, links: 0 })
  })

  it.each([
    ['a piece that is not shown', '<p>a <span style="display:none">b</span>c</p>', ['a c'], false],
    ['a piece that a click shows', '<p>a <span class="read-more" hidden>b</span></p>', ['a b'], false],
    ['a piece that screen readers skip', '<p>a <i aria-hidden=true>b</i></p>', ['a b'], false],
    ['the MathML of a formula', '<p>a <span style="display:none"><math><mi>x</mi></math></span></p>', ['a x'], false],
    ['nothing but hidden pieces', '<p> <span hidden>a</span> <span hidden>b</span></p>', ['a b'], true],
  ])('are hidden only as far as they are: %s', (_what, html, texts, isHidden) => {
    const { blocks } = blocksOf(html)
    expect(blocks.map(({ text }) => text)).toEqual(texts)
    expect(blocks.map((block) => block.isHidden)).toEqual([isHidden])
  })

  it('leave a picture beside hidden text on its own', () => {
    const { blocks, media } = blocksOf('<p><span hidden>a<img src=h.png></span><img src=i.png></p>')
    expect(blocks[0]?.media.map((element) => element.attribute('src'))).toEqual(['h.png'])
    expect(media.map(({ element }) => element.attribute('src'))).toEqual(['i.png'])
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

/** What is left when blocks that begin with a plus are chosen. */
function left(html: string): string {
  const page = textBlocks(readTree(html).body)
  const chosen = page.blocks.map(({ text }) => text.startsWith('+'))
  return writeHtml(contentTree(page, chosen), '')
}

describe('the tree of the content', () => {
  it.each([
    ['chosen blocks with what holds them', '<ul><li>+a<li>b<li>+c</ul><p>d</p>', '<ul><li>+a</li><li>+c</li></ul>'],
    ['text beside blocks', '<blockquote>+a<p>b</p>c</blockquote>', '<blockquote>+a</blockquote>'],
    ['marks and breaks in the text', '<p>+a <b>b</b><br>c</p>', '<p>+a <b>b</b><br>c</p>'],
    [
      'cells without content, for those after them',
      '<table><tr><td><td>+a<tr><td>b</table>',
      '<table><tr><td></td><td>+a</td></tr></table>',
    ],
    ['all of a piece of code', '<pre>+a<br><br>b</pre>', '<pre>+a<br><br>b</pre>'],
    ['nothing when nothing is chosen', '<div><p>a</p><br></div>', ''],
  ])('holds %s', (_what, html, expected) => {
    expect(left(html)).toBe(expected)
  })

  const image = '<img src="i.png" alt="">'
  it.each([
    ['in a chosen block', `<p>+a ${image}</p>`, true],
    ['in a block that is not', `<p>a ${image}</p><p>+b</p>`, false],
    ['between two chosen blocks', `<section><p>+a</p></section>${image}<section><p>+b</p></section>`, true],
    ['beside a chosen block', `<div><p>+a</p>${image}</div><p>b</p>`, true],
    [
      'far from the chosen block before it',
      `<main><div><div><p>+a</p></div></div></main><aside><div>${image}</div><p>b</p></aside>`,
      false,
    ],
    ['between two others', `<p>a</p>${image}<p>b</p><p>+c</p>`, false],
  ])('decides about a picture %s', (_what, html, expected) => {
    expect(left(html).includes('<img')).toBe(expected)
  })

  it('keeps the sizes that a picture comes in', () => {
    expect(left('<p>+a <picture><source srcset="l.png 2x"><img alt=x></picture></p>')).toContain(
      '<img src="l.png" alt="x">',
    )
  })

  it('leaves the page as it is', () => {
    const tree = readTree('<p>+a</p><p>b</p>')
    contentTree(textBlocks(tree.body), [true, false])
    expect(writeHtml(tree.body, '')).toBe('<p>+a</p><p>b</p>')
  })
})

describe('the text in the data of a page', () => {
  it('is the longest one, wherever it lies', () => {
    const scripts = [
      JSON.stringify({
        '@graph': [{ '@type': 'Product', description: 'A kettle.' }, { article: { articleBody: 'Long story.' } }],
      }),
      JSON.stringify([{ text: 'Short' }]),
    ]
    expect(structuredText(scripts)).toBe('Long story.')
  })

  it.each([
    ['there is none', []],
    ['the data is broken', ['{"articleBody": "x"']],
    ['it is no text', ['{"articleBody": {"text": 5}}', 'null', '"x"']],
    ['it lies deeper than data of that kind', [`${'['.repeat(100)}{"text":"x"}${']'.repeat(100)}`]],
    ['it is nested without an end', ['['.repeat(500_000)]],
  ])('is empty when %s', (_what, scripts) => {
    expect(structuredText(scripts)).toBe('')
  })
})

describe('the prose in the state of an application', () => {
  const prose = (subject: string): string =>
    `${subject} carries heat well, as every cook knows, and so the pots of good kitchens are of it.`

  it('is that of one path, in the order of the page', () => {
    const state = {
      translations: { hint: prose('Tin'), id: 'x'.repeat(900) },
      article: { body: [{ text: prose('Copper') }, { text: 'short' }, { text: prose('Iron') }] },
    }
    expect(stateText([JSON.stringify(state)])).toBe(`${prose('Copper')}\n${prose('Iron')}`)
  })

  it.each([
    ['names and numbers', JSON.stringify({ a: ['b c d '.repeat(50), 5, null] })],
    ['an address', JSON.stringify({ a: `//images.example.org/${'x'.repeat(90)}. Copper and iron are heated in it.` })],
    ['what is no JSON', 'x = 1'],
    ['what lies too deep', `${'['.repeat(100)}"${prose('Tin')}"${']'.repeat(100)}`],
  ])('is not %s', (_what, script) => {
    expect(stateText([script])).toBe('')
  })
})
