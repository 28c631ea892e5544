import { describe, expect, it } from '@jest/globals'
import { cpuMs } from '../../../../../test/support/eventually.js'
import { PageMaker, proseLines } from '../../../../../test/support/pdf-files.js'
import { ARTIFACT, type PdfPage, type StructureNode } from './layout-model.js'
import { pagesToMarkdown } from './pages-to-markdown.js'

type Child = StructureNode | string
const node = (role: string, ...children: Child[]): StructureNode => ({ role, alt: '', children })
const tagged = (maker: PageMaker, ...children: Child[]): PdfPage => ({
  ...maker.page(),
  structure: node('Root', node('Document', ...children)),
})
const markdownOf = (...pages: PdfPage[]): string => pagesToMarkdown(pages, [])

/** A page that writes each text below the last one, tagged by its own number from `t0` on. */
function written(texts: readonly string[], number = 1): PageMaker {
  const maker = new PageMaker(number)
  for (const [index, text] of texts.entries()) maker.text(text, 50, 60 + 20 * index, { contentId: `t${index}` })
  return maker
}

describe('a page whose file says by tags what its text is', () => {
  it('has the headings, paragraphs and lists of the tags, whatever they look like', () => {
    const texts = ['Kettles', 'They boil', 'water.', '•', 'of iron', 'of steel', 'of tin', 'End.']
    const page = tagged(
      written(texts),
      node('H2', 't0'),
      node('P', node('Span', 't1'), node('NonStruct', 't2')),
      node(
        'L',
        node('LI', node('Lbl', 't3'), node('LBody', 't4', node('L', node('LI', node('LBody', 't5'))))),
        node('LI', node('NonStruct', 't6')),
      ),
      node('NonStruct', node('NonStruct', 't7')),
    )
    expect(markdownOf(page)).toBe('## Kettles\n\nThey boil water.\n\n- of iron\n  - of steel\n- of tin\n\nEnd.\n')
  })

  it('has lists whose numbers are labels, or stand in the text of the items', () => {
    const page = tagged(
      written(['1.', 'Fill it', '2. Heat it', '[9]', 'Watt 1769']),
      node('L', node('LI', node('Lbl', 't0'), node('LBody', 't1')), node('LI', node('LBody', node('P', 't2')))),
      node('P', 't3'),
      node('L', node('LI', node('Lbl', 't3'), node('LBody', 't4'))),
    )
    expect(markdownOf(page)).toContain('1. Fill it\n2. Heat it\n')
  })

  it('has tables without lines, with empty cells, cells of several lines and cells that span', () => {
    const maker = new PageMaker()
      .row(['Name'], [50], 60, { contentId: 'Name' })
      .row(['Text'], [150], 60, { contentId: 'Text' })
      .row(['Price'], [300], 60, { contentId: 'Price' })
      .row(['Pipe'], [50], 80, { contentId: 'a' })
      .lines(['made of', 'copper'], 150, 80, { contentId: 'b' })
      .row(['12'], [300], 80, { contentId: 'c' })
      .row(['9'], [300], 110, { contentId: 'd' })
      .row(['Valve'], [50], 130, { contentId: 'e' })
      .row(['7'], [300], 130, { contentId: 'f' })
    const cells = (...ids: string[]) => ids.map((id) => node('TD', ...(id === '' ? [] : [node('P', id)])))
    const head = ['Name', 'Text', 'Price'].map((text) => node('TH', text))
    const page = tagged(
      maker,
      node(
        'Table',
        node('THead', node('TR', ...head)),
        node(
          'TBody',
          node('TR', ...cells('a', 'b', 'c')),
          node('TR', ...cells('', '', 'd')),
          node('TR', ...cells('e', 'f')),
        ),
      ),
    )
    expect(markdownOf(page)).toBe(
      '| Name | Text | Price |\n| --- | --- | --- |\n| Pipe | made of copper | 12 |\n|  |  | 9 |\n| Valve |  | 7 |\n',
    )
  })

  it('keeps the text of a table that only lays out the page as text', () => {
    const page = tagged(
      written(['Left', 'Right', 'Below']),
      node('H1', 't2'),
      node('Table', node('TR', node('TD', node('P', 't0')), node('TD', node('P', 't1')))),
    )
    expect(markdownOf(page)).toBe('# Below\n\nLeft\n\nRight\n')
  })

  it('goes on with a list item, a table and a paragraph of the page before', () => {
    const rows = (texts: readonly string[]) =>
      texts.map((_, index) => node('TR', node('TD', `t${2 * index}`), node('TD', `t${2 * index + 1}`)))
    const first = tagged(
      written(['A', 'B', 'C', 'D']),
      node(
        'Table',
        node('TR', node('TH', 't0'), node('TH', 't1')),
        node('TR', node('TD', 't2'), node('TD', 't3')),
        node('TR', node('TD'), node('TD')),
      ),
    )
    const second = tagged(
      written(['E', 'F', 'then it is'], 2),
      node('Table', node('TR', node('TH'), node('TH')), ...rows(['E'])),
      node('L', node('LI', node('Lbl'), node('LBody', 't2'))),
    )
    const third = tagged(
      written(['full.', 'Next'], 3),
      node('L', node('LI', node('LBody', 't0')), node('LI', node('Lbl'), node('LBody', 't1'))),
    )
    const markdown = markdownOf(first, second, third)
    expect(markdown).toContain('| A | B |\n| --- | --- |\n| C | D |\n| E | F |\n')
    expect(markdown).toContain('- then it is full.\n')
    expect(markdown).toContain('- Next\n')
  })

  it('follows a paragraph into the next column, and code into one block', () => {
    const maker = new PageMaker()
      .text('Heads', 50, 40, { contentId: 'h' })
      .lines(['the first', 'column is'], 50, 700, { contentId: 'p' })
      .lines(['not the', 'last.'], 320, 60, { contentId: 'p' })
      .text('let x', 320, 100, { contentId: 'c1', isFixedPitch: true })
      .text('x = 1', 330, 112, { contentId: 'c2', isFixedPitch: true })
    const page = tagged(maker, node('H1', 'h'), node('P', 'p'), node('P', 'c1'), node('P', 'c2'))
    expect(markdownOf(page)).toBe('# Heads\n\nthe first column is not the last.\n\n```\nlet x\n  x = 1\n```\n')
  })

  it('keeps the indents of code that goes on in the next column', () => {
    const code = { contentId: 'c', isFixedPitch: true }
    const maker = new PageMaker()
      .text('Heads', 50, 40, { contentId: 'h' })
      .text('The body of the page is prose, not code.', 50, 60, { contentId: 'p' })
      .text('def f():', 50, 700, code)
      .text('return', 70, 712, code)
      .text('print(1)', 320, 60, code)
    const page = tagged(maker, node('H1', 'h'), node('P', 'p'), node('Code', 'c'))
    expect(markdownOf(page)).toContain('```\ndef f():\n    return\nprint(1)\n```\n')
  })

  it('has the description of a picture without text, and a title that only looks like one', () => {
    const maker = written(['', 'Body text of the page.', 'Part']).text('A large title', 50, 40, {
      fontSize: 24,
      contentId: 'x',
    })
    const figure = { role: 'Figure', alt: 'A kettle on a stove', children: [] }
    const page = tagged(maker, node('P', 'x'), node('P', 't1'), figure, node('H1', 't2'))
    expect(markdownOf(page)).toBe('# A large title\n\nBody text of the page.\n\nA kettle on a stove\n\n# Part\n')
  })

  it('keeps links and superscripts of a paragraph without tag in it, and puts footnotes behind theirs', () => {
    const maker = written(['Heading'])
      .text('Made by', 50, 100, { contentId: 'a' })
      .text('Ada', 90, 100, { contentId: 'b' })
      .text('1', 105, 97, { contentId: 'c', fontSize: 6 })
      .text('in iron', 120, 100, { contentId: 'd' })
      .text('and tin.', 50, 112, { contentId: 'e' })
      .text('Another one', 50, 140, { contentId: 'f' })
      .text('1', 50, 700, { contentId: 'g' })
      .text('A note.', 60, 700, { contentId: 'h' })
    const note = node('Note', node('Lbl', 'g'), node('P', 'h'))
    const page = tagged(
      maker,
      node('H1', 't0'),
      node(
        'Div',
        node('NonStruct', 'a'),
        node('Link', 'b'),
        node('NonStruct', 'c'),
        node('NonStruct', 'd'),
        node('Span', 'e'),
        node('P', 'f', note),
      ),
    )
    expect(markdownOf(page)).toBe('# Heading\n\nMade by Ada<sup>1</sup> in iron and tin.\n\nAnother one\n\n1 A note.\n')
  })

  it('parts the terms and definitions of generic elements, and keeps a paragraph around a picture without a word', () => {
    const maker = written(['Heading', 'Term', 'Definition', 'Image without:', 'end.'])
    const figure = node('Figure', node('NonStruct'))
    const generic = (id: string) => node('NonStruct', node('NonStruct', id))
    const page = tagged(
      maker,
      node('H1', 't0'),
      node('NonStruct', generic('t1'), generic('t2')),
      node('P', 't3', figure, 't4'),
    )
    expect(markdownOf(page)).toBe('# Heading\n\nTerm\n\nDefinition\n\nImage without: end.\n')
  })

  it('has the numbers of headings and of a table of contents that are labels', () => {
    const maker = new PageMaker()
      .row(['1'], [50], 100, { contentId: 't1' })
      .row(['Kettles'], [80], 100, { contentId: 't2' })
      .row(['3'], [50], 120, { contentId: 't3' })
      .row(['Pots'], [80], 120, { contentId: 't4' })
      .text('. . . . . .', 150, 140, { contentId: ARTIFACT })
      .text('2', 50, 40, { contentId: 'n' })
      .text('Use', 80, 40, { contentId: 'u' })
    const toc = node(
      'TOC',
      node('TOCI', node('Lbl', 't1'), node('Reference', 't2')),
      node('TOCI', node('Lbl', 't3'), 't4'),
    )
    const page = tagged(maker, node('L', node('LI', node('Lbl', 'n'), node('LBody', node('H2', 'u')))), toc)
    expect(markdownOf(page)).toBe('## 2 Use\n\n- 1 Kettles\n- 3 Pots\n')
  })

  it('leaves out what the file calls no content in the margins, and nothing else that has no tag', () => {
    const maker = written(['Kettles', 'They boil water, all of them, at a hundred degrees.', 'More of it here.'])
      .text('Page 1', 50, 780, { contentId: ARTIFACT })
      .text('Stamp', 400, 400, { contentId: ARTIFACT })
      .text('Note', 50, 90)
    const markdown = markdownOf(tagged(maker, node('H1', 't0'), node('P', 't1'), node('P', 't2')))
    expect(markdown).toContain('# Kettles\n\nThey boil')
    expect(markdown).toContain('Stamp')
    expect(markdown).toContain('Note')
    expect(markdown).not.toContain('Page 1')
  })
})

describe('tags that cannot be meant', () => {
  const lines = proseLines(8, 60)
  const page = (...children: Child[]) => markdownOf(tagged(written(lines), ...children))
  const untagged = markdownOf(written(lines).page())
  const paragraphs = lines.map((_, index) => node('P', `t${index}`))

  it('are not followed where they leave out much of the text, reverse it, or name nothing but paragraphs', () => {
    expect(page(node('H1', 't0'), node('P', 't1'))).toBe(untagged)
    expect(page(node('L', node('LI', 't7')), ...[...paragraphs].reverse())).toBe(untagged)
    expect(page(...paragraphs)).toBe(untagged)
  })

  it('are not followed where they know of no table on a page that has one', () => {
    const maker = written(lines).grid([50, 150, 250], [300, 320, 340])
    maker
      .row(['Name', 'Text'], [60, 160], 314, { contentId: 'a' })
      .row(['Pipe', 'new'], [60, 160], 334, { contentId: 'b' })
    const markdown = markdownOf(tagged(maker, node('H1', 't0'), ...paragraphs, node('P', 'a', 'b')))
    expect(markdown).toContain('| Pipe | new |')
  })

  it('are not followed where paragraphs hold blank lines, or most of many are headings', () => {
    const maker = new PageMaker()
    const ids = Array.from({ length: 4 }, (_, index) => `p${index}`)
    for (const [index, id] of ids.entries()) {
      for (const y of [0, 12, 50]) maker.text('one two three', 50, 60 + 90 * index + y, { contentId: id })
    }
    const gapped = ids.map((id) => node('P', id))
    expect(markdownOf(tagged(maker, ...gapped, node('L')))).toBe(markdownOf(maker.page()))
    const many = written(proseLines(14, 60))
    const headings = Array.from({ length: 14 }, (_, index) => node('H1', `t${index}`))
    expect(markdownOf(tagged(many, ...headings))).toBe(markdownOf(many.page()))
  })

  it('show text once that they name twice', () => {
    const markdown = page(node('H1', 't0'), ...paragraphs, ...paragraphs)
    expect(markdown.split(lines[3] ?? '')).toHaveLength(2)
  })

  it('take linear time however many they are, and however deep', () => {
    const maker = new PageMaker()
    const ids = Array.from({ length: 20_000 }, (_, index) => `t${index}`)
    for (const [index, id] of ids.entries())
      maker.text('ab', 50 + (index % 50) * 10, 20 + Math.floor(index / 50), { contentId: id, fontSize: 1 })
    const cell = (id: string) => node('TR', node('TD', id), node('TD'))
    const deep = ids
      .slice(0, 50)
      .reduce<StructureNode>((inner, id) => node('L', node('LI', node('Lbl', id), inner)), node('P'))
    const before = cpuMs()
    expect(
      markdownOf(
        tagged(
          maker,
          deep,
          node('Table', ...ids.slice(50, 10_000).map(cell)),
          ...ids.slice(10_000).map((id) => node('P', id)),
        ),
      ),
    ).toContain('ab')
    expect(cpuMs() - before).toBeLessThan(5000)
  })
})
