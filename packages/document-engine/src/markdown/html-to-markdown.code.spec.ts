import { describe, expect, it } from '@jest/globals'
import { parseHTML } from 'linkedom'
import { htmlToMarkdown } from './html-to-markdown.js'
import { type MarkupNode } from './markup-node.js'

function markdownOf(html: string): string {
  const page = parseHTML(`<html><body>${html}</body></html>`) as unknown as { document: { body: MarkupNode } }
  return htmlToMarkdown(page.document.body, { baseUrl: 'https://example.org/' }).trimEnd()
}

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
    expect(markdownOf(html)).toBe(markdown)
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
    expect(markdownOf(html)).toBe(markdown)
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
    expect(markdownOf(html)).toBe(`\`\`\`${language}\nx\n\`\`\``)
  })
})
