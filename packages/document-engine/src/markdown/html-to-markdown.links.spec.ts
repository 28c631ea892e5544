import { describe, expect, it } from '@jest/globals'
import { parseHTML } from 'linkedom'
import { htmlToMarkdown } from './html-to-markdown.js'
import { type MarkupNode } from './markup-node.js'

function markdownOf(html: string, baseUrl = 'https://example.org/dir/page?q=1'): string {
  const page = parseHTML(`<html><body>${html}</body></html>`) as unknown as { document: { body: MarkupNode } }
  return htmlToMarkdown(page.document.body, { baseUrl }).trimEnd()
}

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
    expect(markdownOf(html)).toBe(markdown)
  })

  it('stay relative where no base is known', () => {
    expect(markdownOf('<a href="a b.html">x</a> <a href="java\nscript:x">y</a>', '')).toBe('[x](a%20b.html) y')
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
    expect(markdownOf(html)).toBe(markdown)
  })
})
