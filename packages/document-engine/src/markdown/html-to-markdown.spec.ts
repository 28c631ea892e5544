import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { parseHTML } from 'linkedom'
import { cpuMs } from '../../../../test/support/eventually.js'
import { htmlToMarkdown } from './html-to-markdown.js'
import type { MarkupNode } from './markup-node.js'

function bodyOf(html: string): MarkupNode {
  const page = parseHTML(`<html><body>${html}</body></html>`) as unknown as { document: { body: MarkupNode } }
  return page.document.body
}

/** With the line feed at its end. */
const markdownOf = (html: string, baseUrl = 'https://example.org/dir/page?q=1'): string =>
  htmlToMarkdown(bodyOf(html), { baseUrl })

const trimmedMarkdownOf = (html: string, baseUrl?: string): string => markdownOf(html, baseUrl).trimEnd()

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

describe('Emphasis', () => {
  it.each([
    ['bold and italic', '<b>a</b> <strong>b</strong> <i>c</i> <em>d</em>', '**a** **b** *c* *d*'],
    ['both at once', '<b><i>a</i></b>', '***a***'],
    ['italic within bold', '<b>a <i>b</i> c</b>', '**a _b_ c**'],
    ['bold within bold', '<b>a <strong>b</strong></b>', '**a b**'],
    ['bold beside bold', '<b>a</b><b>b</b>', '**ab**'],
    ['nothing emphasised', 'a<b></b><i> </i>b', 'a b'],
    ['inner blanks', 'a<b> b </b>c', 'a **b** c'],
    ['a part of a word', 'un<i>believ</i>able', 'un*believ*able'],
    ['punctuation before a letter', '<b>注意。</b>中文', '**注意**。中文'],
    ['a colon before a blank', '<b>Note:</b> text', '**Note:** text'],
    ['a bracket within a word', 'f<b>(x)</b>y', 'f(**x**)y'],
    ['code within bold beside a letter', '<b><code>a</code></b>b', '`a`b'],
    ['a bold link beside a letter', '<b><a href="/x">中</a></b>文', '[**中**](https://example.org/x)文'],
    ['code that loses its emphasis beside code', 'b<i><code>x</code></i><code>y</code>', 'b`xy`'],
    ['brackets that meet a parenthesis', '[a]<b>(</b>b)', '\\[a\\]\\(b)'],
    ['struck text', '<s>a</s> <del>b</del> <strike>c</strike>', '~~a~~ ~~b~~ ~~c~~'],
    ['bold that is undone', '<b style="font-weight:normal">a</b>', 'a'],
    [
      'bold and italic by style',
      '<span style="font-weight:700">a</span> <span style="font-style:italic">b</span>',
      '**a** *b*',
    ],
    ['emphasis around paragraphs', '<b><p>a</p><p>b</p></b>', '**a**\n\n**b**'],
    ['emphasis over a break', '<b>a<br>b</b>', '**a\\\nb**'],
    ['overlapping runs', '<b>a <i>b</i></b><i> c</i>', '**a _b_** *c*'],
    ['inserted and marked text', '<ins>a</ins> <u>b</u> <mark>c</mark> <small>d</small>', 'a b c d'],
  ])('is right for %s', (_title, html, markdown) => {
    expect(trimmedMarkdownOf(html)).toBe(markdown)
  })
})

describe('Text', () => {
  it.each([
    ['white space', '<p>  a \n\t b  </p>', 'a b'],
    ['blanks around elements', 'a <span> b</span> <span>c </span> d', 'a b c d'],
    ['non-breaking spaces', 'a&nbsp;b&#8239;c', 'a b c'],
    ['invisible characters', 'a\u200bb\u00adc\ufeffd', 'abcd'],
    ['joiners that scripts need', 'می\u200cخواهم 👩\u200d💻', 'می\u200cخواهم 👩\u200d💻'],
    ['a line break between CJK characters', '中文\n中文', '中文中文'],
    ['a line break between words', 'one\ntwo', 'one two'],
    ['right-to-left text', '<p dir="rtl">שלום \u200fעולם</p>', 'שלום \u200fעולם'],
    ['a break', 'a<br>b<br/>', 'a\\\nb'],
    ['two breaks', 'a<br><br>b', 'a\n\nb'],
    ['a list marker after a break', 'a<br>- b', 'a\\\n\\- b'],
    ['markup in text', '*a* &lt;b&gt; [c](d) `e`', '\\*a\\* \\<b> \\[c\\]\\(d) \\`e\\`'],
    ['an optional break', 'super<wbr>long', 'superlong'],
    ['comments and scripts', 'a<!-- x --><script>y()</script><style>z</style>b', 'ab'],
    ['controls', 'a<button>Copy</button><select><option>x</select><input>', 'a'],
    ['a button that opens a section', '<h3><button>Question?</button></h3>', '### Question?'],
  ])('is right for %s', (_title, html, markdown) => {
    expect(trimmedMarkdownOf(html)).toBe(markdown)
  })
})

describe('Scripts and quotations', () => {
  it.each([
    ['subscript digits', 'H<sub>2</sub>O', 'H₂O'],
    ['superscript digits', 'x<sup>2</sup> 10<sup>−3</sup>', 'x² 10⁻³'],
    ['other scripts', 'a<sub>max</sub> e<sup>a+b</sup>', 'a<sub>max</sub> e<sup>a+b</sup>'],
    ['ordinals and marks', '1<sup>st</sup> Foo<sup>TM</sup> Bar<sup>®</sup> Baz<sup>*</sup>', '1st Foo™ Bar® Baz\\*'],
    ['a reference in brackets', 'word<sup><a href="#n1">[1]</a></sup>', 'word[1]'],
    ['a reference by number', 'word<sup><a href="#n1">1</a></sup>', 'word¹'],
    ['a link that is raised', 'word<sup><a href="/n">note</a></sup>', 'word[note](https://example.org/n)'],
    ['quotation marks', '<q>a</q>', '“a”'],
    ['ruby', '<ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp></ruby>', '漢(kan)'],
    [
      'TeX in MathML',
      '<math><semantics><mi>x</mi><annotation encoding="application/x-tex">{\\displaystyle x^2}</annotation></semantics></math>',
      '$x^2$',
    ],
    [
      'MathML alone',
      '<math><msup><mi>x</mi><mn>2</mn></msup><mo>+</mo><mfrac><mn>1</mn><mi>y</mi></mfrac></math>',
      '$x^{2}+\\frac{1}{y}$',
    ],
    ['a formula of its own', '<p>a</p><math display="block"><mi>E</mi></math>', 'a\n\n$$\nE\n$$'],
    ['KaTeX without its frame', '<math><mi>a</mi></math><span class="katex-html">a</span>', '$a$'],
    [
      'KaTeX',
      '<span class="katex"><span class="katex-mathml"><math><annotation encoding="application/x-tex">a_b</annotation></math></span><span class="katex-html">ab</span></span>',
      '$a_b$',
    ],
    ['MathJax 2', '<span class="MathJax_Preview">x</span><script type="math/tex">x_1</script>', '$x_1$'],
    ['a picture of a formula', '<img class="latex" src="f.png" alt="\\alpha">', '$\\alpha$'],
    ['TeX between delimiters', '<span class="math inline">\\(a*b*c\\)</span>', '$a*b*c$'],
  ])('are right for %s', (_title, html, markdown) => {
    expect(trimmedMarkdownOf(html)).toBe(markdown)
  })
})

// GFM takes the backslash of `\\<` as part of a bare URL before it, so that the tag behind it would be one.
describe('Text that looks like a tag', () => {
  const TAG = '&lt;img src=x onerror=alert(1)>'

  it.each([
    ['right behind a URL', `www.e.org${TAG}`, 'www.e.org&lt;img src=x onerror=alert(1)>'],
    ['behind a URL and a blank', `https://e.org ${TAG}`, 'https://e.org \\<img src=x onerror=alert(1)>'],
    ['behind a URL in capitals', `HTTPS://e.org/${TAG}`, 'HTTPS://e.org/&lt;img src=x onerror=alert(1)>'],
    ['behind another one', `www.e.org&lt;b>${TAG}`, 'www.e.org&lt;b>&lt;img src=x onerror=alert(1)>'],
    ['behind a URL with a comparison', `www.e.org&lt;1${TAG}`, 'www.e.org<1&lt;img src=x onerror=alert(1)>'],
    ['in bold behind a URL', `www.e.org/.<b>&lt;i>a</b>`, 'www.e.org/.**&lt;i>a**'],
    ['behind bold behind a URL', `ftp://e.org<b>x</b>${TAG}`, 'ftp://e.org**x**&lt;img src=x onerror=alert(1)>'],
    [
      'behind code behind a URL',
      `www.e.org<code>c</code>${TAG}`,
      'www.e.org<code>c</code>&lt;img src=x onerror=alert(1)>',
    ],
    ['in code behind a URL', 'www.e.org<code>&lt;b></code>', 'www.e.org<code>&#60;b&#62;</code>'],
    ['in a link behind a URL', 'www.e.org<a href="/y">&lt;b></a>', 'www.e.org[&lt;b>](https://example.org/y)'],
    ['in a picture behind a URL', 'www.e.org<img src="/y" alt="&lt;b>">', 'www.e.org![&lt;b>](https://example.org/y)'],
    ['behind a URL in a link', '<a href="/y">www.e.org&lt;b></a>', '[www.e.org&lt;b>](https://example.org/y)'],
    [
      'behind a URL in a cell',
      '<table><tr><th>a<th>b<tr><td>www.e.org&lt;b><td>c</table>',
      '| a | b |\n| --- | --- |\n| www.e.org&lt;b> | c |',
    ],
    ['in a formula', `<math alttext="${TAG}"></math>`, '$< img src=x onerror=alert(1)>$'],
    [
      'in a formula of its own',
      `<math display="block" alttext="${TAG}"></math>`,
      '$$\n< img src=x onerror=alert(1)>\n$$',
    ],
    ['behind a dollar in a formula', `<math alttext="a$ ${TAG} \\$b\\"></math>`, `$a\\$ < ${TAG.slice(4)} \\$b$`],
    ['in a quotation of a formula', '<math alttext="\\text{`x\'}"></math>', "$\\text{‘x'}$"],
    ['in a picture of a formula', `<img class="tex" alt="${TAG}">`, '$< img src=x onerror=alert(1)>$'],
    ['in a mail address', `<a href="mailto:a${TAG}">x</a>`, '[x](mailto:a%3Cimg%20src=x%20onerror=alert(1)%3E)'],
  ])('is no tag %s', (_title, html, markdown) => {
    expect(trimmedMarkdownOf(html)).toBe(markdown)
  })
})

describe('Links', () => {
  it.each([
    ['a relative address', '<a href="../a">x</a>', '[x](https://example.org/a)'],
    ['an absolute address', '<a href="http://e.org/b?c=d#e">x</a>', '[x](http://e.org/b?c=d#e)'],
    ['blanks and quotes in it', `<a href='/a b"c'>x</a>`, '[x](https://example.org/a%20b%22c)'],
    ['paired parentheses', '<a href="/a_(b)">x</a>', '[x](https://example.org/a_(b))'],
    ['a lone parenthesis', '<a href="/a)">x</a>', '[x](https://example.org/a%29)'],
    ['what looks like an entity', '<a href="/?a&amp;copy;">x</a>', '[x](https://example.org/?a&amp;copy;)'],
    ['scripts', '<a href="javascript:x()">x</a> <a href=" JaVaScRiPt:x">y</a>', 'x y'],
    ['data', '<a href="data:text/html,x">x</a>', 'x'],
    ['nothing', '<a href="">x</a><a>y</a>', 'xy'],
    ['a place on the page', '<a href="#a">x</a> <a href="/dir/page?q=1#a">y</a>', 'x y'],
    ['a place on another page', '<a href="/b#a">x</a>', '[x](https://example.org/b#a)'],
    ['a way back', 'note <a href="#r1">↩</a>', 'note'],
    ['brackets in the text', '<a href="/a">[x] y</a>', '[\\[x\\] y](https://example.org/a)'],
    ['blanks at its ends', 'a<a href="/a"> x </a>b', 'a [x](https://example.org/a) b'],
    ['no text', 'a<a href="/a"> </a>b', 'a b'],
    ['a break in the text', '<a href="/a">x<br>y</a>', '[x y](https://example.org/a)'],
    ['emphasis', '<a href="/a"><b>x</b> y</a>', '[**x** y](https://example.org/a)'],
    ['its own address for text', '<a href="https://e.org/">https://e.org</a>', '<https://e.org>'],
    ['another address for text', '<a href="https://e.org/b">https://e.org</a>', '[https://e.org](https://e.org/b)'],
    ['mail', '<a href="mailto:a@b.cd">a@b.cd</a> <a href="mailto:a@b.cd">x</a>', '<a@b.cd> [x](mailto:a@b.cd)'],
    ['a link within', '<a href="/a">x <a href="/b">y</a></a>', '[x y](https://example.org/a)'],
    ['an exclamation before it', 'a!<a href="/a">x</a>', 'a\\![x](https://example.org/a)'],
    [
      'a card with a heading',
      '<a href="/a"><img src="/i.png" alt=""><h3>T</h3><p>t</p></a>',
      '![](https://example.org/i.png)\n\n### [T](https://example.org/a)\n\nt',
    ],
    ['a card without one', '<a href="/a"><div>T</div><p>t</p></a>', '[T](https://example.org/a)\n\nt'],
    ['a card in text', 'x <a href="/a"><div>T</div></a> y', 'x\n\n[T](https://example.org/a)\n\ny'],
    ['a bad address', '<a href="http://[">x</a>', 'x'],
  ])('are right for %s', (_title, html, markdown) => {
    expect(trimmedMarkdownOf(html)).toBe(markdown)
  })

  it('stay relative where no base is known', () => {
    expect(trimmedMarkdownOf('<a href="a b.html">x</a> <a href="java\nscript:x">y</a>', '')).toBe('[x](a%20b.html) y')
  })
})

describe('Pictures and films', () => {
  it.each([
    ['a picture', '<img src="i.png" alt="a  b">', '![a b](https://example.org/dir/i.png)'],
    ['its title where it has no text', '<img src="i.png" title="t">', '![t](https://example.org/dir/i.png)'],
    ['brackets in its text', '<img src="/i.png" alt="a] *b*">', '![a\\] \\*b\\*](https://example.org/i.png)'],
    [
      'a picture in a link',
      '<a href="/a"><img src="/i.png" alt="i"></a>',
      '[![i](https://example.org/i.png)](https://example.org/a)',
    ],
    ['data', '<img src="data:image/gif;base64,R0lG" alt="x">', ''],
    [
      'a late picture',
      '<img src="data:image/gif;base64,R0lG" data-src="/i.png" alt="">',
      '![](https://example.org/i.png)',
    ],
    ['several sizes', '<img srcset="/s.png 100w, /l.png 300w">', '![](https://example.org/l.png)'],
    [
      'commas in the address',
      '<img srcset="/w_1,h_2/a.png 1x,/w_2,h_4/a.png 2x">',
      '![](https://example.org/w_2,h_4/a.png)',
    ],
    ['sources beside it', '<picture><source srcset="/a.webp"><img></picture>', '![](https://example.org/a.webp)'],
    ['a pixel', '<img src="/a.png" width="1" height="1">', ''],
    ['a hidden picture', '<img src="/a.png" style="display:none">', ''],
    ['a beacon', '<img src="https://t.org/pixel.gif?u=1"><img src="https://t.org/collect?v=1">', ''],
    ['no address', '<img alt="a">', ''],
    ['a film in a frame', '<iframe src="//v.org/embed/1" title="Film"></iframe>', '[Film](https://v.org/embed/1)'],
    ['another frame', '<iframe src="https://ads.org/x"></iframe>', ''],
    ['a film of its own', '<video><source src="/f.mp4"></video>', '[Video](https://example.org/f.mp4)'],
    ['sound', '<audio src="/f.mp3" title="Talk"></audio>', '[Talk](https://example.org/f.mp3)'],
    ['drawings', 'a<svg><title>t</title><path d="M0"/></svg>b', 'ab'],
  ])('are right for %s', (_title, html, markdown) => {
    expect(trimmedMarkdownOf(html)).toBe(markdown)
  })
})

/** Rows of data cells; one that begins with a blank begins with attributes. */
function table(...rows: readonly (readonly string[])[]): string {
  const cells = rows.map((row) => row.map((cell) => `<td${cell.startsWith(' ') ? cell : `>${cell}`}</td>`).join(''))
  return `<table>${cells.map((row) => `<tr>${row}</tr>`).join('')}</table>`
}

describe('Tables', () => {
  it.each([
    [
      'a header',
      '<table><thead><tr><th>A<th>B</thead><tbody><tr><td>1<td>2</tbody></table>',
      '| A | B |\n| --- | --- |\n| 1 | 2 |',
    ],
    ['its first row for a header', table(['A', 'B'], ['1', '2']), '| A | B |\n| --- | --- |\n| 1 | 2 |'],
    [
      'no bold in the header',
      '<table><tr><th><b>A</b><th>B<tr><td><b>1</b><td>2</table>',
      '| A | B |\n| --- | --- |\n| **1** | 2 |',
    ],
    [
      'a caption',
      `<table><caption>C</caption><tr><td>A<td>B<tr><td>1<td>2</table>`,
      'C\n\n| A | B |\n| --- | --- |\n| 1 | 2 |',
    ],
    ['pipes', table(['a|b', '<code>c|d</code>'], ['1', '2']), '| a\\|b | `c\\|d` |\n| --- | --- |\n| 1 | 2 |'],
    [
      'pipes behind backslashes',
      table(['a\\|b', '<code>\\|</code>'], ['1', '2']),
      '| a\\\\&#124;b | <code>&#92;&#124;</code> |\n| --- | --- |\n| 1 | 2 |',
    ],
    [
      'bars in formulas',
      table(['<span class="math">$|x|$</span>', 'a'], ['1', '2']),
      '| $\\vert x\\vert $ | a |\n| --- | --- |\n| 1 | 2 |',
    ],
    [
      'breaks and paragraphs',
      table(['a<br>b', '<p>c</p><p>d</p>'], ['1', '2']),
      '| a<br>b | c<br>d |\n| --- | --- |\n| 1 | 2 |',
    ],
    [
      'lists',
      table(['A', 'B'], ['<ul><li>a<li>b</ul>', '<ol><li>c</ol>']),
      '| A | B |\n| --- | --- |\n| - a<br>- b | 1. c |',
    ],
    [
      'a cell over columns',
      table([' colspan="2">A', 'B'], ['1', '2', '3']),
      '| A | | B |\n| --- | --- | --- |\n| 1 | 2 | 3 |',
    ],
    [
      'a cell over rows',
      table(['A', 'B'], [' rowspan="2">x', '1'], ['2']),
      '| A | B |\n| --- | --- |\n| x | 1 |\n| x | 2 |',
    ],
    [
      'a cell over rows at the end',
      table(['A', 'B'], ['1', ' rowspan="2">x'], ['2']),
      '| A | B |\n| --- | --- |\n| 1 | x |\n| 2 | x |',
    ],
    [
      'a cell over all rows left',
      table(['A', 'B'], [' rowspan="0">x', '1'], ['2'], ['3']),
      '| A | B |\n| --- | --- |\n| x | 1 |\n| x | 2 |\n| x | 3 |',
    ],
    [
      'a cell over both',
      table(['A', 'B', 'C'], [' rowspan="2" colspan="2">x', '1'], ['2']),
      '| A | B | C |\n| --- | --- | --- |\n| x | | 1 |\n| x | | 2 |',
    ],
    ['ragged rows', table(['A', 'B'], ['1'], ['2', '3']), '| A | B |\n| --- | --- |\n| 1 | |\n| 2 | 3 |'],
    [
      'no empty rows and columns',
      table(['A', '', 'B'], ['', '', ''], ['1', '', '2']),
      '| A | B |\n| --- | --- |\n| 1 | 2 |',
    ],
    [
      'alignment',
      '<table><tr><th align="right">A<th style="text-align: center">B<tr><td>1<td>2</table>',
      '| A | B |\n| ---: | :---: |\n| 1 | 2 |',
    ],
    [
      'links and pictures',
      table(['<a href="/x">a</a>', '<img src="/i.png">'], ['1', '2']),
      '| [a](https://example.org/x) | ![](https://example.org/i.png) |\n| --- | --- |\n| 1 | 2 |',
    ],
    ['row headers', '<table><tr><th>A<td>1<tr><th>B<td>2</table>', '| A | 1 |\n| --- | --- |\n| B | 2 |'],
    [
      'code in cells',
      '<table><tr><th>A<th>B<tr><td><pre>x\ny</pre><td>1</table>',
      '| A | B |\n| --- | --- |\n| `x`<br>`y` | 1 |',
    ],
    [
      'tables in cells',
      `<table><tr><th>A<th>B<tr><td>${table(['x', 'y'], ['z', 'w'])}<td>1</table>`,
      '| A | B |\n| --- | --- |\n| x y<br>z w | 1 |',
    ],
  ])('have %s', (_title, html, markdown) => {
    expect(trimmedMarkdownOf(html)).toBe(markdown)
  })
})

describe('Tables that lay out a page', () => {
  it.each([
    ['one column', table(['a'], ['b']), 'a\n\nb'],
    ['one row', table(['a', 'b']), 'a\n\nb'],
    ['a role that says so', `<table role="presentation"><tr><td>a<td>b<tr><td>c<td>d</table>`, 'a\n\nb\n\nc\n\nd'],
    [
      'tables within',
      table([table(['a', 'b'], ['c', 'd']), 'x'], ['y', 'z']),
      '| a | b |\n| --- | --- |\n| c | d |\n\nx\n\ny\n\nz',
    ],
    ['headings within', table(['<h2>a</h2>', 'b'], ['c', 'd']), '## a\n\nb\n\nc\n\nd'],
    ['nothing in them', table(['', ''], ['', '']), ''],
    ['one column with words', table(['a', ''], ['b', '']), 'a\n\nb'],
  ])('become blocks: %s', (_title, html, markdown) => {
    expect(trimmedMarkdownOf(html)).toBe(markdown)
  })
})

describe('Code spans', () => {
  it.each([
    ['code, keys and samples', '<code>a</code> <kbd>Ctrl</kbd> <samp>b</samp> <tt>c</tt>', '`a` `Ctrl` `b` `c`'],
    ['backticks within', '<code>a`b</code> <code>``</code>', '``a`b`` ` `` `'],
    ['markup within', '<code>*a* <b>_b_</b> &lt;c&gt;</code>', '`*a* _b_ <c>`'],
    ['outer blanks', 'x<code> a </code>y', 'x `a` y'],
    ['nothing', 'x<code></code>y', 'xy'],
    ['a link of all of it', '<code><a href="/x">a</a></code>', '[`a`](https://example.org/x)'],
    ['code in a link', '<a href="/x"><code>a</code></a>', '[`a`](https://example.org/x)'],
    ['two in a row', '<code>a</code><code>b</code>', '`ab`'],
  ])('are right for %s', (_title, html, markdown) => {
    expect(trimmedMarkdownOf(html)).toBe(markdown)
  })
})

describe('Code blocks', () => {
  it.each([
    ['white space', '<pre>\n  a\n\n\n\n\tb  c\n</pre>', '```\n  a\n\n\n\n\tb  c\n```'],
    ['a fence within', '<pre>```js\nx\n```</pre>', '````\n```js\nx\n```\n````'],
    ['highlighting', '<pre><code><span class="k">let</span> a</code></pre>', '```\nlet a\n```'],
    ['breaks', '<pre>a<br>b</pre>', '```\na\nb\n```'],
    ['a block for each line', '<pre><div>a</div><div>b</div></pre>', '```\na\nb\n```'],
    ['a code element for each line', '<pre><code>a</code><code>b</code></pre>', '```\na\nb\n```'],
    ['line elements', '<pre><span class="line">a</span>\n<span class="line">b</span></pre>', '```\na\nb\n```'],
    ['line numbers', '<pre><span class="lineno">1 </span>a\n<span class="lineno">2 </span>b</pre>', '```\na\nb\n```'],
    [
      'line numbers in a column',
      '<table class="highlight"><tr><td class="gutter"><pre>1\n2</pre></td><td><pre>a\n b</pre></td></tr></table>',
      '```\na\n b\n```',
    ],
    [
      'line numbers in rows',
      '<table><tr><td data-line-number="1"></td><td>a</td></tr><tr><td data-line-number="2"></td><td>  b</td></tr></table>',
      '```\na\n  b\n```',
    ],
    ['code with breaks', '<code>a<br>b</code>', '```\na\nb\n```'],
    ['nothing', '<pre> \n </pre>', ''],
    ['carriage returns and odd blanks', '<pre>a\r\n\u00a0b\u200b</pre>', '```\na\n b\n```'],
  ])('are right for %s', (_title, html, markdown) => {
    expect(trimmedMarkdownOf(html)).toBe(markdown)
  })

  it.each([
    ['<pre><code class="language-js">x</code></pre>', 'js'],
    ['<pre><code class="lang-Python">x</code></pre>', 'python'],
    ['<pre class="brush: java; gutter: false">x</pre>', 'java'],
    ['<div class="highlight highlight-source-shell"><pre>x</pre></div>', 'shell'],
    ['<div class="highlight-text-html-basic"><pre>x</pre></div>', 'html'],
    ['<pre data-lang="rust"><code>x</code></pre>', 'rust'],
    ['<div class="language-go highlighter-rouge"><div class="highlight"><pre><code>x</code></pre></div></div>', 'go'],
    ['<figure class="highlight css"><pre>x</pre></figure>', 'css'],
    ['<pre><code class="hljs yaml">x</code></pre>', 'yaml'],
    ['<pre class="sourceCode c++"><code>x</code></pre>', 'c++'],
    ['<pre lang="ruby">x</pre>', 'ruby'],
    ['<pre><code class="language-plaintext">x</code></pre>', ''],
    ['<pre><code class="big code">x</code></pre>', ''],
    ['<pre><code class="language-`x`">x</code></pre>', ''],
  ])('of %s are in "%s"', (html, language) => {
    expect(trimmedMarkdownOf(html)).toBe(`\`\`\`${language}\nx\n\`\`\``)
  })
})

// Each takes less than a second; a quadratic step takes half a minute.
const LONGEST_MS = 7_500

function conversion(html: string): { markdown: string; elapsedMs: number } {
  const body = bodyOf(html)
  const start = cpuMs()
  const markdown = htmlToMarkdown(body, { baseUrl: 'https://example.org/' })
  return { markdown, elapsedMs: cpuMs() - start }
}

function repeated(unit: string, count: number): string {
  return unit.repeat(count)
}

describe('Hostile HTML', () => {
  it.each([
    ['a table of 50,000 cells', `<table>${repeated(`<tr>${repeated('<td>c</td>', 10)}</tr>`, 5_000)}</table>`],
    ['a row of 30,000 cells', `<table><tr>${repeated('<th>c</th>', 30_000)}</tr></table>`],
    [
      'cells that span everything',
      `<table>${repeated('<tr><th colspan=1000 rowspan=65534>x</th><td>y</td></tr>', 10_000)}</table>`,
    ],
    [
      'a long cell over all rows',
      `<table><tr><th rowspan=0>${repeated('x', 100_000)}</th><th>y</th></tr>${repeated('<tr><td>x</td></tr>', 20_000)}</table>`,
    ],
    [
      'ragged rows',
      `<table><tr>${repeated('<th>c</th>', 10_000)}</tr>${repeated('<tr><td>x</td></tr>', 20_000)}</table>`,
    ],
    ['tables in tables', repeated('<table><tr><th>a</th><td rowspan=3>', 150) + repeated('<p>x</p>', 20_000)],
    ['5 MB of text', `<p>${repeated('lorem ipsum_dolor *sit* [a](b) ', 165_000)}</p>`],
    ['25,000 pieces of emphasis', `<p>x<b>${repeated('<i>a.</i>b<code>c</code>', 25_000)}</b>y`],
    ['emphasised breaks', `<p>a<b>${repeated('<br>', 100_000)}</b>b`],
    ['quotes in quotes', repeated('<blockquote>', 500) + repeated('<p>x</p>', 20_000)],
    ['lists in lists', repeated('<ul><li>', 250) + repeated('<p>x</p>', 20_000)],
    ['lists between items', `<ul><li>a</li>${repeated('<ul><li>b</li></ul>', 15_000)}</ul>`],
    ['headings in headings', repeated('<h2><div>', 250) + repeated('<p>x</p>', 20_000)],
    ['scripts in scripts', repeated('<sup>', 500) + repeated('x', 100_000)],
    ['links in links', repeated('<a href="#x">', 250) + repeated('<a href="/x"><p>', 250) + repeated('x<br>', 20_000)],
    [
      'formulas without source',
      `<span>${repeated('<img class="tex" alt="x"><span class="katex"></span>', 10_000)}</span>`,
    ],
    [
      'runs of delimiters',
      `<p>${['*', '_', '`', '~', '.', '\u00a0'].map((unit) => `a<b>${repeated(unit, 200_000)}</b>b`).join('')}`,
    ],
    ['styles without end', `<p>a<span style="${repeated('text-decorationa :lin', 20_000)}">b</span>`],
    ['attributes without end', `<img srcset="${repeated(',', 200_000)}"><a href="/${repeated('(', 200_000)}">x</a>`],
  ])('takes time in proportion to its size: %s', (_title, html) => {
    expect(conversion(html).elapsedMs).toBeLessThan(LONGEST_MS)
  })

  it('keeps its size in proportion to that of the page', () => {
    const spans = conversion(
      `<table>${repeated('<tr><th colspan=1000 rowspan=65534>x</th><td>y</td></tr>', 1_000)}</table>`,
    )
    expect(spans.markdown.length).toBeLessThan(200_000)
    const quotes = conversion(repeated('<blockquote>', 500) + repeated('<p>x</p>', 1_000))
    expect(quotes.markdown.length).toBeLessThan(200_000)
    const nested = conversion(repeated('<table><tr><th rowspan=2>a</th><td rowspan=2>', 100) + 'x')
    expect(nested.markdown.length).toBeLessThan(10_000)
  })

  it.each(['b', 'div', 'span', 'sub', 'a', 'li', 'blockquote', 'td', 'q', 'h2'])(
    'keeps the text below 10,000 nested <%s>',
    (tag) => {
      expect(conversion(`${repeated(`<${tag} href="/x">`, 10_000)}word`).markdown).toContain('word')
    },
  )
})

describe('Markdown made of any HTML', () => {
  const TAGS = 'p div span b i s code a ul ol li dl dt dd blockquote h2 table tr td th pre sup q details summary'.split(
    ' ',
  )
  const TEXTS = [
    'word',
    ' ',
    ' two words ',
    '*',
    '_x_',
    '`',
    '```',
    '|',
    '-',
    '1. ',
    '# ',
    '&lt;script>',
    '中文。',
    '\n',
    '[x](y)',
    '\\',
    '>',
  ]
  const VOID = ['<br>', '<hr>', '<img src="/i.png" alt="a|b">', '<input type="checkbox">', '<script>alert(1)</script>']

  const html = fc.letrec<{ node: string; nodes: string }>((tie) => ({
    nodes: fc.array(tie('node'), { maxLength: 5 }).map((nodes) => nodes.join('')),
    node: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constantFrom(...TEXTS),
      fc.constantFrom(...VOID),
      fc.tuple(fc.constantFrom(...TAGS), tie('nodes')).map(([tag, nodes]) => {
        const attributes = tag === 'a' ? ' href="/x"' : tag === 'td' ? ' colspan="2" rowspan="2"' : ''
        return `<${tag}${attributes}>${nodes}</${tag}>`
      }),
    ),
  })).nodes

  const ESCAPE_OR_CODE = /\\[^]|(`+)(?!`)[^]*?(?<!`)\1(?!`)/g

  interface Line {
    readonly text: string
    readonly isCode: boolean
  }

  /** Lines without the marks of quotes and items, and whether each stands within a fence; fails for a fence left open. */
  function linesOf(markdown: string): Line[] {
    let fence = ''
    const lines = markdown.split('\n').map((line): Line => {
      const text = line.replace(/^(?:> ?|- |\d+[.)] |\[[ x]\] | )+/, '')
      const run = /^`{3,}/.exec(text)?.[0] ?? ''
      const isFence = fence === '' ? run !== '' && !text.slice(run.length).includes('`') : text === fence
      if (!isFence) return { text: line, isCode: fence !== '' }
      fence = fence === '' ? run : ''
      return { text: line, isCode: true }
    })
    expect(fence).toBe('')
    return lines
  }

  it('ends with one line feed, and has neither trailing blanks nor two blank lines in a row outside code', () => {
    fc.assert(
      fc.property(html, (source) => {
        const markdown = markdownOf(source)
        expect(markdown).toMatch(/^$|[^\n]\n$/)
        const lines = linesOf(markdown)
        for (const [index, { text, isCode }] of lines.slice(0, -1).entries()) {
          if (isCode) continue
          expect(text).toBe(text.trimEnd())
          if (text === '') expect(lines[index + 1]?.text).not.toBe('')
        }
      }),
      { numRuns: 500 },
    )
  })

  it('lets no tag through that a page could run', () => {
    fc.assert(
      fc.property(html, (source) => {
        const prose = linesOf(markdownOf(source)).filter(({ isCode }) => !isCode)
        for (const { text } of prose) {
          const open = text.replace(ESCAPE_OR_CODE, '')
          expect(open).not.toMatch(/<(?!br>|\/?code>|\/?su[bp]>|https?:)[a-z/!]/i)
        }
      }),
      { numRuns: 500 },
    )
  })

  it('gives all rows of a table the same number of cells', () => {
    const cell = fc.tuple(
      fc.constantFrom('td', 'th'),
      fc.integer({ min: 0, max: 4 }),
      fc.integer({ min: 0, max: 4 }),
      html,
    )
    const rows = fc.array(fc.array(cell, { maxLength: 4 }), { maxLength: 5 })
    fc.assert(
      fc.property(rows, (cells) => {
        const source = cells.map((row) => {
          const inner = row.map(
            ([tag, columns, reach, content]) => `<${tag} colspan="${columns}" rowspan="${reach}">${content}</${tag}>`,
          )
          return `<tr>${inner.join('')}</tr>`
        })
        let width = 0
        for (const { text, isCode } of linesOf(markdownOf(`<table>${source.join('')}</table>`))) {
          const isRow = !isCode && /^[> -]*\|.*\|$/.test(text)
          const bars = text.replace(/\\[^]/g, '').split('|').length
          if (isRow && width > 0) expect(bars).toBe(width)
          width = isRow ? bars : 0
        }
      }),
      { numRuns: 500 },
    )
  })

  it('does not change the tree it reads', () => {
    fc.assert(
      fc.property(html, (source) => {
        const page = parseHTML(`<html><body>${source}</body></html>`) as unknown as { document: { body: MarkupNode } }
        const { body } = page.document
        const first = htmlToMarkdown(body, { baseUrl: '' })
        expect(htmlToMarkdown(body, { baseUrl: '' })).toBe(first)
      }),
    )
  })

  it('keeps every word', () => {
    const words = fc.array(fc.constantFrom('b', 'i', 's', 'a', 'span', 'p', 'li', 'td', 'h3', 'code', 'sup'), {
      minLength: 1,
      maxLength: 30,
    })
    fc.assert(
      fc.property(words, (tags) => {
        const source = tags.map((tag, index) => `<${tag} href="/x">word${index}end</${tag}> `).join('')
        const markdown = markdownOf(source)
        for (const index of tags.keys()) expect(markdown).toContain(`word${index}end`)
      }),
    )
  })
})
