import { describe, expect, it } from '@jest/globals'
import { EngineFault } from '../model/document.js'
import { descendantsOf } from '../markdown/markup-node.js'
import { HtmlElement, type HtmlNode, HtmlText, textBelow } from './html-node.js'
import { DEEPEST_LEVEL, MOST_NODES, readTree } from './html-parser.js'

/** Tags and texts, without attributes. */
function outline(node: HtmlNode): string {
  if (node instanceof HtmlText) return node.data
  let inner = ''
  for (let child = node.firstChild; child !== null; child = child.nextSibling) inner += outline(child)
  return node.localName === 'body' ? inner : `<${node.localName}>${inner}</${node.localName}>`
}

const bodyOf = (html: string): string => outline(readTree(html).body)

function depthOf(root: HtmlElement): number {
  let deepest = 0
  for (const node of descendantsOf(root)) {
    let depth = 0
    for (let above = node.parentNode; above !== null; above = above.parentNode) depth += 1
    deepest = Math.max(deepest, depth)
  }
  return deepest
}

const XHTML = '<div><a></a><span></span>y<p></p>z</div>'

describe('the tree of a page', () => {
  it.each([
    ['a page without html, head and body', 'Hello <b>you</b>', 'Hello <b>you</b>'],
    ['a whole document', '<!doctype html><html><head></head><body><p>x</p></body></html>', '<p>x</p>'],
    ['paragraphs that are never closed', '<p>a<p>b<div>c</div>', '<p>a</p><p>b</p><div>c</div>'],
    [
      'a paragraph that a table in a cell does not end',
      '<p>a<table><tr><td><p>b</table>',
      '<p>a</p><table><tr><td><p>b</p></td></tr></table>',
    ],
    [
      'list items that are never closed',
      '<ul><li>a<li>b<ul><li>c</ul><li>d</ul>',
      '<ul><li>a</li><li>b<ul><li>c</li></ul></li><li>d</li></ul>',
    ],
    [
      'rows and cells that are never closed',
      '<table><tr><td>a<td>b<tr><th>c</table>d',
      '<table><tr><td>a</td><td>b</td></tr><tr><th>c</th></tr></table>d',
    ],
    ['terms that are never closed', '<dl><dt>a<dd>b<dt>c</dl>', '<dl><dt>a</dt><dd>b</dd><dt>c</dt></dl>'],
    ['links in links', '<a>one<a>two</a>', '<a>one</a><a>two</a>'],
    [
      'an end tag that a cell keeps in',
      '<div><table><tr><td></div>x</table>y</div>',
      '<div><table><tr><td>x</td></tr></table>y</div>',
    ],
    ['bold text that ends inside a paragraph', '<b><p>a</b>b</p>c', '<b><p>ab</p></b>c'],
    ['a stretch of text that does not end a block', '<span><div>a</span>b</div>', '<span><div>ab</div></span>'],
    ['end tags that nothing opened', 'a</i></div>b</p>c', 'ab<p></p>c'],
    ['entities', '&lt;p&gt; &eacute;&#x2014;&copy 5', '<p> é—© 5'],
    ['a section of XML, which is a comment here', 'a<![CDATA[ x > b ]]> c', 'a b ]]> c'],
    ['self-closing tags that do not close', '<div/>x', '<div>x</div>'],
    ['a self-closed target of links, which is meant to be empty', '<a id="x"/>y<a href="z"/>w', '<a></a>y<a>w</a>'],
    ['XHTML by its declaration', '<?xml version="1.0"?><div><a id="x"/><span/>y<p/>z</div>', XHTML],
    [
      'XHTML by its type of document',
      '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN"><title/><script src="x.js"/><div><a id="x"/><span/>y<p/>z</div>',
      XHTML,
    ],
  ])('reads %s', (_what, html, expected) => {
    expect(bodyOf(html)).toBe(expected)
  })

  it.each([
    ['scripts', 'a<script>document.write("<p>x</p>")</script>b', 'ab'],
    ['styles', 'a<style>p > a { color: red }</style>b', 'ab'],
    ['comments', 'a<!-- <p>x</p> -->b', 'ab'],
    ['drawings with titles', 'a<svg><title>Icon</title><g><text>x</text></g></svg>b', 'ab'],
    ['a drawing in one tag', 'a<svg/>b', 'ab'],
    ['choices of a form', 'a<select><option>one<option>two</select>b', 'ab'],
    ['templates within templates', 'a<template><template>x</template>y</template>b', 'ab'],
    ['a drawing that is never closed', 'a<svg><path><p>b</p>', 'a<p>b</p>'],
  ])('leaves out %s', (_what, html, expected) => {
    expect(bodyOf(html)).toBe(expected)
  })

  it('keeps what a page says about itself apart, wherever it stands', () => {
    const tree = readTree('<p>a<meta name="x" content="1"><title>T &amp; T</title><link rel=icon href=i.png>b')
    expect(outline(tree.body)).toBe('<p>ab</p>')
    expect(tree.head.map(({ localName }) => localName)).toEqual(['meta', 'title', 'link'])
    expect(textBelow(tree.head[1] ?? tree.body)).toBe('T & T')
  })

  it('hands over data scripts and keeps formulas', () => {
    const tree = readTree('<script type="application/ld+json">{"a":"<b>"}</script><script type="math/tex">x<y</script>')
    expect(tree.jsonLd).toEqual(['{"a":"<b>"}'])
    expect(textBelow(tree.body)).toBe('x<y')
  })

  it('takes no handlers into the tree, and the first of two equal attributes', () => {
    const [image] = [...descendantsOf(readTree('<img onerror="x()" SRC=a.png src=b.png>').body)]
    expect(image).toBeInstanceOf(HtmlElement)
    expect([...(image as HtmlElement).attributes]).toEqual([['src', 'a.png']])
  })

  it('flattens what is nested too deeply without losing its text or its end', () => {
    const depth = DEEPEST_LEVEL * 4
    const tree = readTree(`${'<div>'.repeat(depth)}deep${'</div>'.repeat(depth)}<p>after</p>`)
    expect(depthOf(tree.body)).toBeLessThanOrEqual(DEEPEST_LEVEL + 1)
    expect(textBelow(tree.body)).toBe('deepafter')
    expect(outline(tree.body).endsWith('</div><p>after</p>')).toBe(true)
  })

  it('keeps apart the lines of what is nested too deeply', () => {
    const tree = readTree(`${'<div>'.repeat(DEEPEST_LEVEL)}<p>one</p><p>two</p>`)
    expect(outline(tree.body)).toContain('one<br></br>two')
  })

  it('refuses a page of more elements than the limit', () => {
    expect(() => readTree('<br>'.repeat(MOST_NODES + 1))).toThrow(EngineFault)
    expect(() => readTree('<br>'.repeat(1000))).not.toThrow()
  })
})
