import { describe, expect, it } from '@jest/globals'
import { readTree } from './html-parser.js'
import { writeHtml } from './html-writer.js'

const written = (html: string, baseUrl = 'https://example.org/a/b'): string => writeHtml(readTree(html).body, baseUrl)

describe('cleaned markup', () => {
  it.each([
    ['plain elements', '<p class=x style="color:red" onclick=y()>a <em>b</em></p>', '<p>a <em>b</em></p>'],
    [
      'text that looks like markup',
      '<p>1 &lt; 2 &amp;amp; <b title="&quot;q&quot;">x</b></p>',
      '<p>1 &lt; 2 &amp;amp; <b title="&quot;q&quot;">x</b></p>',
    ],
    [
      'boxes in boxes',
      '<div><section><x-card><p>a</p></x-card></section></div><div><p>b</p>c</div>',
      '<section><p>a</p></section><div><p>b</p>c</div>',
    ],
    ['stretches of text', '<p><span>a</span><font color=red>b</font></p>', '<p>ab</p>'],
    ['blanks outside code', '<p>a\n\n  b</p><pre>a\n  <b>b\n</b></pre>', '<p>a b</p><pre>a\n  <b>b\n</b></pre>'],
    [
      'cells over several rows',
      '<table><tr><td colspan=2 bgcolor=red>a</table>',
      '<table><tr><td colspan="2">a</td></tr></table>',
    ],
    [
      'a film with its sources',
      '<video poster=p.png><source src=f.mp4></video>',
      '<video src="https://example.org/a/f.mp4" controls></video>',
    ],
    [
      'a formula',
      '<math><mfrac><mi>a</mi><mn>2</mn></mfrac></math>',
      '<math><mfrac><mi>a</mi><mn>2</mn></mfrac></math>',
    ],
    [
      'the language of code',
      '<div class="highlight-source-js"><pre>a\n</pre></div><pre class=x><code class="language-py">b</code></pre>',
      '<pre><code class="language-js">a\n</code></pre><pre><code class="language-py">b</code></pre>',
    ],
    [
      'a formula once',
      '<span><math><semantics><mi>x</mi><annotation encoding="application/x-tex">x</annotation></semantics></math><img class=tex alt=x src=x.png></span><span class=katex-html>x</span>',
      '<math><semantics><mi>x</mi></semantics></math>',
    ],
    ['headings without the handles behind them', '<h2>a<a class=headerlink href="#a">¶</a></h2>', '<h2>a</h2>'],
    [
      'no frames, forms and embedded things',
      '<form><input value=x>a</form><iframe src=x>y</iframe><embed src=z>',
      '<div>a</div>',
    ],
  ])('keeps %s', (_what, html, expected) => {
    expect(written(html)).toBe(expected)
  })

  it.each([
    ['beside the page', 'c?d=1&copy=2#e', '<a href="https://example.org/a/c?d=1&amp;copy=2#e">x</a>'],
    ['of a post box', 'mailto:a@b.org', '<a href="mailto:a@b.org">x</a>'],
    ['that runs a script', ' java\nscript:alert(1)', 'x'],
    ['that holds data', 'data:text/html,x', 'x'],
    ['within the page', '#top', 'x'],
  ])('writes a link %s', (_what, href, expected) => {
    expect(written(`<a href="${href.replaceAll('&', '&amp;')}">x</a>`)).toBe(expected)
  })

  it.each([
    [
      'with a size',
      '<img src=i.png alt="A&amp;B" width=10 height=20 onload=x>',
      '<img src="https://example.org/a/i.png" alt="A&amp;B" width="10" height="20">',
    ],
    [
      'that waits for a script',
      '<img src="data:image/gif;base64,R0" data-src=i.png>',
      '<img src="https://example.org/a/i.png" alt="">',
    ],
    ['in several sizes', '<img srcset="s.png 1x, l.png 2x">', '<img src="https://example.org/a/l.png" alt="">'],
    ['that counts visits', '<img src=t.gif width=1 height=1>', ''],
    ['that is data', '<img src="data:image/png;base64,AA">', ''],
  ])('writes a picture %s', (_what, html, expected) => {
    expect(written(html)).toBe(expected)
  })

  it('leaves addresses relative where there is no base URL', () => {
    expect(written('<a href="c/d">x</a><img src=i.png>', '')).toBe('<a href="c/d">x</a><img src="i.png" alt="">')
  })
})
