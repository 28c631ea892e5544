import { describe, expect, it } from '@jest/globals'
import { markedTexts, traitsOf } from '../../../../test/support/office-files.js'
import { FEATURES, subjectsOf } from './block-features.js'
import { chooseByOdds, type ContentChoice } from './content-choice.js'
import { MODEL_FEATURES, TREES } from './content-model.js'
import { completeParts, excludedBlocks } from './content-rules.js'
import { readTree } from './html-parser.js'
import { pageTraits } from './page-traits.js'
import { textBlocks } from './text-blocks.js'

/** The choice for a page whose blocks end with their odds: `some text 1.5`. */
function choiceFor(html: string): ContentChoice & { readonly texts: readonly string[]; readonly titleText: string } {
  const traits = traitsOf(html)
  const { blocks } = traits.page
  const odds = blocks.map(({ text }) => Number(/-?[\d.]+$/.exec(text)?.[0]))
  const choice = chooseByOdds(traits, Float64Array.from(odds))
  const texts = markedTexts(traits, choice.chosen)
  return { ...choice, texts, titleText: choice.title === undefined ? '' : (blocks[choice.title]?.text ?? '') }
}

const long = (odds: number): string => `A line of text that is long enough to weigh something in the balance ${odds}`

describe('the choice of content', () => {
  it('takes what is likely and leaves what is not', () => {
    const { texts } = choiceFor(`<nav>menu -4</nav><p>${long(3)}</p><div>${long(4)}</div><footer>end -3</footer>`)
    expect(texts).toEqual([long(3), long(4)])
  })

  it('takes the best there is when all is unlikely', () => {
    expect(choiceFor('<p>a -6</p><div>b -5</div>').texts).toContain('b -5')
  })

  it('leaves what is in doubt where the content is sure, and takes it where nothing is', () => {
    const doubtful = '<h4>in doubt 0.2</h4>'
    const lines = Array.from({ length: 9 }, () => `<p>${long(6)}</p>`).join('')
    expect(choiceFor(`${doubtful}${lines}`).texts).not.toContain('in doubt 0.2')
    expect(choiceFor(`${doubtful}<p>${long(-0.5)}</p><section>${long(-1)}</section>`).texts).toContain('in doubt 0.2')
  })

  it('treats alike what looks alike', () => {
    const item = (odds: number): string => `<li class=item><p>${long(odds)}</p></li>`
    const { texts } = choiceFor(`<ul>${item(3)}${item(3)}${item(-0.5)}${item(3)}</ul><div>other -5</div>`)
    expect(texts).toHaveLength(4)
  })

  it('takes or leaves the cells of a table together', () => {
    const table = '<table><tr><td>a 3<td>b -2<tr><td>c 3<td>d -1</table>'
    expect(choiceFor(`<p>${long(3)}</p>${table}`).texts).toHaveLength(5)
  })

  it('judges the cells that lay out a page one by one', () => {
    const cells = `<table><tr><td><p>menu -4</p></td><td><div>${`${long(5)} `.repeat(8)}${long(5)}</div></td></table>`
    expect(choiceFor(cells).texts).toHaveLength(1)
  })

  it('takes headings between two parts that it takes, and no others', () => {
    const { texts } = choiceFor(
      `<h3>x -9</h3><p>${long(5)}</p><h2>y -9</h2><h3>z -9</h3><p>${long(5)}</p><h2>last -9</h2>`,
    )
    expect(texts).toEqual([long(5), 'y -9', 'z -9', long(5)])
  })
})

describe('what is missing from the middle of the content', () => {
  /** The choice for content around `html`; its paragraphs are likely. */
  const around = (html: string, head = ''): readonly string[] => {
    const traits = traitsOf(`${head}<div>${`<p>${long(6)}</p>`.repeat(3)}${html}<div><p>${long(6)}</p></div></div>`)
    const odds = traits.page.blocks.map(({ text }) => Number(/-?[\d.]+$/.exec(text)?.[0] ?? -5))
    const { chosen } = chooseByOdds(traits, Float64Array.from(odds))
    return markedTexts(traits, chosen).filter((text) => text !== long(6))
  }
  const sentence =
    'Copper carries heat well, as every cook knows; a cook who has tried it does not want to go back to iron.'

  it.each([
    ['sentences', `<section><p class=x>${sentence}</p></section>`, [sentence]],
    ['sentences of a section about privacy', `<section id=privacy><p>${sentence}</p></section>`, [sentence]],
    ['a footnote', `<div class=footnote><p>${sentence}</p></div>`, [sentence]],
    ['a list', '<ul><li>one</li><li>two <ul><li>three</li></ul></li></ul>', ['one', 'two', 'three']],
    ['a list of terms', '<dl><dt>one</dt><dd><p>two</p></dd></dl>', ['one', 'two']],
    ['the rest of a quotation', '<blockquote><p>one</p><footer>two</footer></blockquote>', ['one', 'two']],
    [
      'a table of linked members below its heading',
      '<h2>Members -5</h2><table><tr><td>int<td><a href=x>alphabet()</a><tr><td>int<td><a href=x>beta()</a></table>',
      ['Members -5', 'int', 'alphabet()', 'int', 'beta()'],
    ],
  ])('is added: %s', (_what, html, expected) => {
    expect(around(html)).toEqual(expected)
  })

  it.each([
    ['an advertisement', `<div class="advert"><p>${sentence}</p></div>`],
    ['a list to share it', '<ul class="share"><li>Mail</li><li>Copy</li></ul>'],
    ['a menu', '<ul><li><a href=a>Home</a></li><li><a href=b>About</a></li></ul>'],
    ['an aside', `<aside><p>${sentence}</p></aside>`],
    ['the caption of a picture', `<figure><figcaption>${sentence}</figcaption></figure>`],
    ['hidden sentences', `<div hidden><p>${sentence}</p></div>`],
    ['who wrote it', `<div class="author-bio"><p>${sentence}</p></div>`],
  ])('is not added: %s', (_what, html) => {
    expect(around(html)).toEqual([])
  })

  it('is looked for in the sections around the one that holds nearly everything', () => {
    const traits = traitsOf(
      `<div><div><p>${sentence}</p></div><div><dl>${`<dt>x<dd>${sentence} ${long(6)}`.repeat(9)}</dl></div></div>`,
    )
    const odds = traits.page.blocks.map(({ text }) => (text.endsWith('6') || text === 'x' ? 6 : -3))
    expect(markedTexts(traits, chooseByOdds(traits, Float64Array.from(odds)).chosen)[0]).toBe(sentence)
  })
})

describe('the title of the content', () => {
  it.each([
    ['the last h1 before it, however unlikely', `<h1>Site -5</h1><h1>Story -5</h1><p>${long(5)}</p>`, 'Story -5'],
    ['the last h1 before it, however likely', `<h1>Story 5</h1><p>${long(5)}</p>`, 'Story 5'],
    ['no h1 of the navigation', `<nav><h1>Site -5</h1></nav><p>${long(5)}</p>`, ''],
    ['no hidden h1', `<h1 hidden>Site -5</h1><p>${long(5)}</p>`, ''],
    ['no h2', `<h2>Part 5</h2><p>${long(5)}</p>`, ''],
  ])('is %s', (_what, html, expected) => {
    const { titleText, texts } = choiceFor(html)
    expect(titleText).toBe(expected)
    if (expected !== '') expect(texts).not.toContain(expected)
  })

  it('stays where it is when it stands among the content', () => {
    const { titleText, texts } = choiceFor(`<p>${long(5)}</p><h1>Late -5</h1><div>${long(5)}</div>`)
    expect({ titleText, texts }).toEqual({ titleText: '', texts: [long(5), 'Late -5', long(5)] })
  })

  it('is content itself when there is nothing below it', () => {
    expect(choiceFor('<h1>Alone 2</h1>')).toMatchObject({ titleText: '', texts: ['Alone 2'] })
  })
})

/** Texts that are chosen after completion; before it, those that begin with a plus are. */
function completed(html: string): string[] {
  const traits = traitsOf(html)
  const chosen = traits.page.blocks.map(({ text }) => text.startsWith('+'))
  completeParts(traits, chosen)
  return markedTexts(traits, chosen)
}

const before = '<p>+before</p>'
const after = '<p>+after</p>'
const table = '<table><tr><td>1<td>2<tr><td>3<td>4</table>'
const all = ['+before', '1', '2', '3', '4', '+after']
const none = ['+before', '+after']

describe('parts of the content that belong together', () => {
  it.each([
    ['a table of data', `${before}${table}${after}`, all],
    ['a program', `${before}<pre>1<br><br>2</pre>${after}`, ['+before', '1', '2', '+after']],
    [
      'a table beside the chosen text in what the page calls its article',
      `<article><div>${before}${after}</div>${table}</article>`,
      ['+before', '+after', '1', '2', '3', '4'],
    ],
    ['no table outside of it', `<div>${before}${after}</div>${table}`, none],
    ['no table of links', `${before}${table.replaceAll(/\d/g, '<a href=x>$&</a>')}${after}`, none],
    ['no table of two cells', `${before}<table><tr><td>1<td>2</table>${after}`, none],
    ['no table that lays out text', `${before}${table.replaceAll(/\d/g, (digit) => digit.repeat(300))}${after}`, none],
    ['no table of a form', `${before}<form>${table}</form>${after}`, none],
    ['no table among what is related', `${before}<div class=related-posts>${table}</div>${after}`, none],
    ['no hidden table', `${before}<div hidden>${table}</div>${after}`, none],
    ['nothing where nothing is chosen', table, []],
  ])('take in %s', (_what, html, expected) => {
    expect(completed(html)).toEqual(expected)
  })
})

function excludedTexts(html: string): string[] {
  const traits = traitsOf(html)
  return markedTexts(traits, excludedBlocks(traits, new Float64Array(traits.page.blocks.length).fill(1)))
}

const seen = `<p>${'What everybody sees, and reads. '.repeat(20)}</p>`
const says = '<meta property=og:type content=article>'

describe('what is no content whatever its odds', () => {
  it.each([
    ['hidden text', `${seen}<p hidden>x</p>`, ['x']],
    ['text hidden by its style', `${seen}<div style="color:red;display:none"><p>x</p></div>`, ['x']],
    ['text hidden from readers alike', `${seen}<p aria-hidden=true>x</p>`, ['x']],
    ['no hidden text that a click shows', `${seen}<div class=tabs><div hidden><p>x</p></div></div>`, []],
    ['hidden text below a short one', `<p>Our kettles are on sale.</p><p style="visibility:hidden">x</p>`, ['x']],
    ['no text of a short page that is hidden from listeners alone', `<p>Our kettles</p><p aria-hidden=true>x</p>`, []],
    ['no hidden text of a page that shows next to nothing', `<p>Loading</p><p hidden>What a script will show</p>`, []],
    ['no hidden text that is most of the page', `${seen}<div hidden>${seen.repeat(6)}</div>`, []],
  ])('is %s', (_what, html, expected) => {
    expect(excludedTexts(html)).toEqual(expected)
  })

  const comments = '<div id=comments><p>x</p></div>'
  it.each([
    ['comments below an article', `${says}${seen}${comments}`, ['x']],
    [
      'comments below an article that its data names',
      `<script type="application/ld+json">{"@type":"NewsArticle"}</script>${seen}${comments}`,
      ['x'],
    ],
    ['no comments of a page that does not say what it is', `${seen}${comments}`, []],
    ['no comments where the article is next to nothing', `${says}<p>Discuss.</p>${comments}`, []],
    ['no page that is called comments as a whole', `${says}<div class=comments>${seen}<p>y</p></div>`, []],
    ['no replies in a forum', `${says}<div class=thread>${seen}${comments}</div>`, []],
  ])('is %s', (_what, html, expected) => {
    expect(excludedTexts(html)).toEqual(expected)
  })
})

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
