import { describe, expect, it } from '@jest/globals'
import { parseHTML } from 'linkedom'
import { htmlToMarkdown } from './html-to-markdown.js'
import { type MarkupNode } from './markup-node.js'

function markdownOf(html: string): string {
  const page = parseHTML(`<html><body>${html}</body></html>`) as unknown as { document: { body: MarkupNode } }
  return htmlToMarkdown(page.document.body, { baseUrl: 'https://example.org/dir/page?q=1' }).trimEnd()
}

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
    ['brackets that meet a parenthesis', '[a]<b>(</b>b)', '[a\\](b)'],
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
    expect(markdownOf(html)).toBe(markdown)
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
    ['markup in text', '*a* &lt;b&gt; [c](d) `e`', '\\*a\\* \\<b> [c\\](d) \\`e\\`'],
    ['an optional break', 'super<wbr>long', 'superlong'],
    ['comments and scripts', 'a<!-- x --><script>y()</script><style>z</style>b', 'ab'],
    ['controls', 'a<button>Copy</button><select><option>x</select><input>', 'a'],
    ['a button that opens a section', '<h3><button>Question?</button></h3>', '### Question?'],
  ])('is right for %s', (_title, html, markdown) => {
    expect(markdownOf(html)).toBe(markdown)
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
    expect(markdownOf(html)).toBe(markdown)
  })
})
