import { describe, expect, it } from '@jest/globals'
import { readMarkdown, type ScoredBlock } from '../support/bench-scripts.js'

const paragraph = (text: string): ScoredBlock => ({ type: 'paragraph', text })
const item = (text: string, depth = 1, ordered = false): ScoredBlock => ({ type: 'item', depth, ordered, text })

describe('reading Markdown for scores', () => {
  const cases: [string, string, ScoredBlock[]][] = [
    [
      'headings',
      '# One\n\n### Two ##',
      [
        { type: 'heading', level: 1, text: 'One' },
        { type: 'heading', level: 3, text: 'Two' },
      ],
    ],
    ['lines of one paragraph', 'one\ntwo  \nthree', [paragraph('one two three')]],
    ['page markers as nothing', 'one\n\n<!-- page 2 -->\n\ntwo', [paragraph('one'), paragraph('two')]],
    [
      'nested items',
      '- a\n  1. b\n     - c\n- d\n  goes on',
      [item('a'), item('b', 2, true), item('c', 3), item('d goes on')],
    ],
    ['items with four blanks', '*   a\n    *   b\n*   c', [item('a'), item('b', 2), item('c')]],
    [
      'a new list after a paragraph',
      '- a\n  - b\n\ntext\n\n- c',
      [item('a'), item('b', 2), paragraph('text'), item('c')],
    ],
    [
      'code as it is',
      '```js title\n  a  *b*\n\n# no\n```',
      [{ type: 'code', language: 'js', text: '  a  *b*\n\n# no' }],
    ],
    ['a longer fence', '````\n```\n````', [{ type: 'code', language: '', text: '```' }]],
    [
      'tables',
      '| a | b\\|c |\n| --- | :-: |\n| `x|y` |  |\n\nafter',
      [
        {
          type: 'table',
          rows: [
            ['a', 'b|c'],
            ['x|y', ''],
          ],
        },
        paragraph('after'),
      ],
    ],
    [
      'quotations as what they hold',
      '> # a\n> b\n> > c',
      [{ type: 'heading', level: 1, text: 'a' }, paragraph('b'), paragraph('c')],
    ],
    ['a line across as nothing', 'a\n\n---\n\nb', [paragraph('a'), paragraph('b')]],
  ]

  it.each(cases)('takes %s', (_name, source, blocks) => {
    expect(readMarkdown(source).blocks).toEqual(blocks)
  })

  it.each([
    ['**bold** and *italic* and ~~gone~~', 'bold and italic and gone'],
    ['snake_case_name and 2 * 3 * 4', 'snake_case_name and 2 * 3 * 4'],
    ['\\*not\\* \\[a\\] 1\\. C:\\dir', '*not* [a] 1. C:\\dir'],
    ['`` a`b `` and `*x*`', 'a`b and *x*'],
    ['a ` alone', 'a ` alone'],
    ['![alt](https://x.example/i.png) after', 'after'],
    ['a<br>b &amp; c &lt;d', 'a b & c <d'],
    ['[not a link] (here)', '[not a link] (here)'],
    ['x<sup>2</sup>', 'x2'],
  ])('reads %j as %j', (source, text) => {
    expect(readMarkdown(source).blocks).toEqual([paragraph(text)])
  })

  it('tells where links lead', () => {
    const { blocks, links } = readMarkdown(
      'See [**the** guide](https://a.example/x_(y) "Title") or <https://b.example/z>.',
    )
    expect(blocks).toEqual([paragraph('See the guide or https://b.example/z.')])
    expect(links).toEqual([
      { text: 'the guide', url: 'https://a.example/x_(y)' },
      { text: 'https://b.example/z', url: 'https://b.example/z' },
    ])
  })
})
