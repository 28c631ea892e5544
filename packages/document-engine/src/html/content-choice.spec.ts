import { describe, expect, it } from '@jest/globals'
import { markedTexts, traitsOf } from '../../../../test/support/page-texts.js'
import { chooseByOdds, type ContentChoice } from './content-choice.js'

/** The choice for a page whose blocks end with their odds: `some text 1.5`. */
function choiceFor(html: string): ContentChoice & { readonly texts: readonly string[]; readonly titleText: string } {
  const traits = traitsOf(html)
  const { blocks } = traits.page
  const odds = blocks.map(({ text }) => Number(/-?[\d.]+$/.exec(text)?.[0]))
  const choice = chooseByOdds(traits, Float64Array.from(odds))
  const texts = markedTexts(traits, choice.chosen)
  return { ...choice, texts, titleText: choice.title === undefined ? '' : (blocks[choice.title]?.text ?? '') }
}

const long = (odds: number): string => `A line of text that is long enough to weigh something in the balance ${odds}`

describe('the choice of content', () => {
  it('takes what is likely and leaves what is not', () => {
    const { texts } = choiceFor(`<nav>menu -4</nav><p>${long(3)}</p><div>${long(4)}</div><footer>end -3</footer>`)
    expect(texts).toEqual([long(3), long(4)])
  })

  it('takes the best there is when all is unlikely', () => {
    expect(choiceFor('<p>a -6</p><div>b -5</div>').texts).toContain('b -5')
  })

  it('leaves what is in doubt where the content is sure, and takes it where nothing is', () => {
    const doubtful = '<h4>in doubt 0.2</h4>'
    const lines = Array.from({ length: 9 }, () => `<p>${long(6)}</p>`).join('')
    expect(choiceFor(`${doubtful}${lines}`).texts).not.toContain('in doubt 0.2')
    expect(choiceFor(`${doubtful}<p>${long(-0.5)}</p><section>${long(-1)}</section>`).texts).toContain('in doubt 0.2')
  })

  it('treats alike what looks alike', () => {
    const item = (odds: number): string => `<li class=item><p>${long(odds)}</p></li>`
    const { texts } = choiceFor(`<ul>${item(3)}${item(3)}${item(-0.5)}${item(3)}</ul><div>other -5</div>`)
    expect(texts).toHaveLength(4)
  })

  it('takes or leaves the cells of a table together', () => {
    const table = '<table><tr><td>a 3<td>b -2<tr><td>c 3<td>d -1</table>'
    expect(choiceFor(`<p>${long(3)}</p>${table}`).texts).toHaveLength(5)
  })

  it('judges the cells that lay out a page one by one', () => {
    const cells = `<table><tr><td><p>menu -4</p></td><td><div>${`${long(5)} `.repeat(8)}${long(5)}</div></td></table>`
    expect(choiceFor(cells).texts).toHaveLength(1)
  })

  it('takes headings between two parts that it takes, and no others', () => {
    const { texts } = choiceFor(
      `<h3>x -9</h3><p>${long(5)}</p><h2>y -9</h2><h3>z -9</h3><p>${long(5)}</p><h2>last -9</h2>`,
    )
    expect(texts).toEqual([long(5), 'y -9', 'z -9', long(5)])
  })
})

describe('the title of the content', () => {
  it.each([
    ['the last h1 before it, however unlikely', `<h1>Site -5</h1><h1>Story -5</h1><p>${long(5)}</p>`, 'Story -5'],
    ['the last h1 before it, however likely', `<h1>Story 5</h1><p>${long(5)}</p>`, 'Story 5'],
    ['no h1 of the navigation', `<nav><h1>Site -5</h1></nav><p>${long(5)}</p>`, ''],
    ['no h1 that nobody sees', `<h1 hidden>Site -5</h1><p>${long(5)}</p>`, ''],
    ['no h2', `<h2>Part 5</h2><p>${long(5)}</p>`, ''],
  ])('is %s', (_what, html, expected) => {
    const { titleText, texts } = choiceFor(html)
    expect(titleText).toBe(expected)
    if (expected !== '') expect(texts).not.toContain(expected)
  })

  it('stays where it is when it stands among the content', () => {
    const { titleText, texts } = choiceFor(`<p>${long(5)}</p><h1>Late -5</h1><div>${long(5)}</div>`)
    expect({ titleText, texts }).toEqual({ titleText: '', texts: [long(5), 'Late -5', long(5)] })
  })

  it('is content itself when there is nothing below it', () => {
    expect(choiceFor('<h1>Alone 2</h1>')).toMatchObject({ titleText: '', texts: ['Alone 2'] })
  })
})
