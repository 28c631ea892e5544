import { describe, expect, it } from '@jest/globals'
import { markedTexts, traitsOf } from '../../../../test/support/page-texts.js'
import { excludedBlocks } from './content-exclusion.js'

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
