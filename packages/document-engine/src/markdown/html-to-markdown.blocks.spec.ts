import { describe, expect, it } from '@jest/globals'
import { parseHTML } from 'linkedom'
import { htmlToMarkdown } from './html-to-markdown.js'
import { type MarkupNode } from './markup-node.js'

function markdownOf(html: string): string {
  const page = parseHTML(`<html><body>${html}</body></html>`) as unknown as { document: { body: MarkupNode } }
  return htmlToMarkdown(page.document.body, { baseUrl: 'https://example.org/dir/page' })
}

describe('Headings', () => {
  it.each([
    [
      'all levels',
      '<h1>a</h1><h2>b</h2><h3>c</h3><h4>d</h4><h5>e</h5><h6>f</h6>',
      '# a\n\n## b\n\n### c\n\n#### d\n\n##### e\n\n###### f\n',
    ],
    ['roles', '<div role="heading" aria-level="3">a</div>', '### a\n'],
    ['none when empty', '<h2> </h2><h3><br></h3>', ''],
    ['no bold of their own', '<h2><strong>a</strong></h2>', '## a\n'],
    [
      'their handles left out',
      '<h2>a <a class="anchor" href="#a">#</a></h2><h2>b<a href="#b">¶</a></h2>',
      '## a\n\n## b\n',
    ],
    ['one line', '<h2>a<br>b<div>c</div></h2>', '## a b c\n'],
    ['number signs at the end', '<h2>C #</h2>', '## C \\#\n'],
    ['a picture instead of words', '<h1><img src="/l.png" alt="Logo"></h1>', '![Logo](https://example.org/l.png)\n'],
    ['a link', '<h2><a href="/x">a</a></h2>', '## [a](https://example.org/x)\n'],
    ['what they swallowed set free', `<h2><p>a</p><ul><li>b</li></ul></h2>`, '## a\n\n- b\n'],
  ])('have %s', (_title, html, markdown) => {
    expect(markdownOf(html)).toBe(markdown)
  })
})

describe('Lists', () => {
  it.each([
    ['bullets', '<ul><li>a</li><li>b</li></ul>', '- a\n- b\n'],
    ['numbers', '<ol><li>a</li><li>b</li></ol>', '1. a\n2. b\n'],
    ['a start', '<ol start="9"><li>a<li>b</ol>', '9. a\n10. b\n'],
    ['a value', '<ol><li value="4">a</ol>', '4. a\n'],
    ['lists within', '<ul><li>a<ul><li>b<ol><li>c</ol></ul><li>d</ul>', '- a\n  - b\n    1. c\n- d\n'],
    ['lists within numbers', '<ol><li>a<ul><li>b</ul></ol>', '1. a\n   - b\n'],
    ['a list between items', '<ul><li>a</li><ul><li>b</li></ul></ul>', '- a\n  - b\n'],
    ['paragraphs', '<ul><li><p>a</p><p>b</p></li><li>c</li></ul>', '- a\n\n  b\n\n- c\n'],
    ['one paragraph each', '<ul><li><p>a</p></li><li><p>b</p></li></ul>', '- a\n- b\n'],
    ['code', '<ol><li>a<pre>x\n  y</pre></li></ol>', '1. a\n\n   ```\n   x\n     y\n   ```\n'],
    ['a quote', '<ul><li><blockquote>a</blockquote></li></ul>', '- > a\n'],
    ['no empty items', '<ul><li></li><li> a</li></ul>', '- a\n'],
    [
      'tasks',
      '<ul><li><input type="checkbox" checked> a</li><li><label><input type=checkbox>b</label></li></ul>',
      '- [x] a\n- [ ] b\n',
    ],
    ['brackets that are no task', '<ul><li>[ ] a</li></ul>', '- \\[ ] a\n'],
    ['no marker of their own text', '<ul><li>1. a</li><li># b</li></ul>', '- 1\\. a\n- \\# b\n'],
    ['one of two in a row', '<ul><li>a</ul><ul><li>b</ul>', '- a\n- b\n'],
    ['numbers kept apart', '<ol><li>a</ol><ol><li>b</ol>', '1. a\n\n1) b\n'],
    ['numbers carried on', '<ol><li>a</ol><ol start="2"><li>b</ol>', '1. a\n2. b\n'],
    ['items in wrappers', '<ul><div><li>a</li></div><li>b</li></ul>', '- a\n- b\n'],
    ['stray items', '<li>a</li><li>b</li>', '- a\n- b\n'],
    ['a late start within', '<ul><li>a<ol start="3"><li>b</ol></ul>', '- a\n\n  3. b\n'],
    ['terms', '<dl><dt>A</dt><dd>a</dd><dt>B:</dt><dd>b</dd></dl>', '- **A**: a\n- **B:** b\n'],
    ['several definitions', '<dl><dt>A</dt><dt>B</dt><dd>a</dd><dd>b</dd></dl>', '- **A**, **B**\n  - a\n  - b\n'],
    ['a long definition', '<dl><dt>A<dd><p>a</p><p>b</p></dl>', '- **A**: a\n\n  b\n'],
  ])('have %s', (_title, html, markdown) => {
    expect(markdownOf(html)).toBe(markdown)
  })
})

describe('Other blocks', () => {
  it.each([
    ['paragraphs', '<p>a</p><div>b<p>c</p>d</div>', 'a\n\nb\n\nc\n\nd\n'],
    ['quotes', '<blockquote><p>a</p><p>b</p></blockquote>', '> a\n>\n> b\n'],
    ['quotes within quotes', '<blockquote>a<blockquote>b</blockquote></blockquote>', '> a\n>\n> > b\n'],
    ['no empty quote', '<blockquote> </blockquote>', ''],
    ['a list in a quote', '<blockquote><ul><li>a<li>b</ul></blockquote>', '> - a\n> - b\n'],
    ['rules', '<hr><p>a</p><hr><hr><p>b</p><hr>', 'a\n\n---\n\nb\n'],
    ['details', '<details><summary>More</summary><p>a</p></details>', '**More**\n\na\n'],
    [
      'figures',
      '<figure><img src="/i.png" alt="i"><figcaption>c</figcaption></figure>',
      '![i](https://example.org/i.png)\n\nc\n',
    ],
    ['nothing', ' <p> </p><div><span></span></div>', ''],
    ['the head left out', '<head><title>t</title></head><p>a', 'a\n'],
  ])('are right for %s', (_title, html, markdown) => {
    expect(markdownOf(html)).toBe(markdown)
  })

  it('are read of a whole document as of an element', () => {
    const page = parseHTML('<html><head><title>t</title></head><body><p>a</p></body></html>') as unknown as {
      document: MarkupNode
    }
    expect(htmlToMarkdown(page.document, { baseUrl: '' })).toBe('a\n')
  })
})
