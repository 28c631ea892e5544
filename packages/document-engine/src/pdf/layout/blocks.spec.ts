import { describe, expect, it } from '@jest/globals'
import { markdownOf, proseLines } from '../../../../../test/support/pdf-files.js'

const LOOK = { width: 400 }

describe('paragraphs of a PDF', () => {
  it('are re-flowed from their lines', () => {
    expect(markdownOf((page) => page.lines(['The first line of it', 'and the second one.'], 50, 100, LOOK))).toBe(
      'The first line of it and the second one.\n',
    )
  })

  it('are empty for pages without text', () => {
    expect(markdownOf((page) => page.text('  ', 50, 100))).toBe('')
  })

  it('end where more white space stands below a line', () => {
    const markdown = markdownOf((page) => {
      page.lines(['One line', 'of the first.'], 50, 100, LOOK).lines(['One line', 'of the second.'], 50, 132, LOOK)
    })
    expect(markdown).toBe('One line of the first.\n\nOne line of the second.\n')
  })

  it('begin with an indented line where no white space parts them', () => {
    const markdown = markdownOf((page) => {
      page.lines(['One line', 'of the first'], 50, 100, LOOK).text('Second begins', 65, 124, { width: 385 })
      page.text('and goes on', 50, 136, LOOK)
    })
    expect(markdown).toBe('One line of the first\n\nSecond begins and goes on\n')
  })

  it('end at a line with room for the next word', () => {
    const markdown = markdownOf((page) => {
      page.text('A long line', 50, 100, LOOK).text('ends here.', 50, 112, { width: 150 })
      page.text('The next one', 50, 124, LOOK)
    })
    expect(markdown).toBe('A long line ends here.\n\nThe next one\n')
  })

  it('join words broken at line ends, at hyphens and at soft hyphens', () => {
    const texts = [
      'This is a contin-',
      'uation of the par\u00ad',
      'agraph about Anglo-',
      'Saxon in 1990-',
      '1995 here.',
    ]
    expect(markdownOf((page) => page.lines(texts, 50, 100, LOOK))).toBe(
      'This is a continuation of the paragraph about Anglo-Saxon in 1990-1995 here.\n',
    )
  })

  it('keep the hyphen of a compound that the document writes with one elsewhere', () => {
    const texts = [
      'A long-term plan is',
      'better than a long-',
      'term one, said the re-',
      'port, and the report is right.',
    ]
    expect(markdownOf((page) => page.lines(texts, 50, 100, LOOK))).toBe(
      'A long-term plan is better than a long-term one, said the report, and the report is right.\n',
    )
  })

  it('put blanks where gaps are as wide as one, and none between kerned pieces', () => {
    const markdown = markdownOf((page) => {
      page.text('A', 50, 100, { width: 7 }).text('V', 56.5, 100, { width: 7 }).text('W', 64, 100, { width: 9 })
      page.text('ord', 73.4, 100, { width: 15 }).text('next', 91, 100, { width: 20 })
    })
    expect(markdown).toBe('AVWord next\n')
  })

  it('set no blanks between lines of Chinese and Japanese', () => {
    const texts = ['这是第一行文字', '第二行文字，', '結束。']
    expect(markdownOf((page) => page.lines(texts, 50, 100, { width: 400 }))).toBe('这是第一行文字第二行文字，結束。\n')
  })

  it('keep right-to-left words in logical order, numbers and all', () => {
    const markdown = markdownOf((page) => {
      page.text('שלום', 200, 100, { width: 20 }).text('עולם', 175, 100, { width: 20 })
      page.text('12', 148, 100, { width: 10 }).text('34', 162, 100, { width: 10 })
    })
    expect(markdown).toBe('שלום עולם 12 34\n')
  })

  it('take a drop cap as the first letter of their first word', () => {
    const markdown = markdownOf((page) => {
      page.text('O', 50, 122, { fontSize: 32, width: 20 }).lines(['nce upon a', 'time there'], 72, 110, { width: 378 })
      page.lines(['was a third', 'and a fourth line'], 50, 134, LOOK)
    })
    expect(markdown).toBe('Once upon a time there was a third and a fourth line\n')
  })

  it('run on over the break of a page, whose marker stands before the first block that begins there', () => {
    const markdown = markdownOf(
      (page) => page.lines(proseLines(30, 70), 50, 80, { width: 400 }),
      (page) => {
        page.lines(['and this is how', 'it ends.'], 50, 80, { width: 400 }).text('Something new.', 50, 130)
      },
    )
    expect(markdown).toMatch(/ and this is how it ends\.\n\n<!-- page 2 -->\n\nSomething new\.\n$/)
  })
})

describe('lists of a PDF', () => {
  it('are found by their bullets, with the lines that go on below the text', () => {
    const markdown = markdownOf((page) => {
      page.text('•', 50, 100).text('first item of', 62, 100, { width: 380 }).text('two lines', 62, 112)
      page.text('•', 50, 124).text('second item', 62, 124)
    })
    expect(markdown).toBe('- first item of two lines\n- second item\n')
  })

  it('are nested by where their marks stand, after a number by three blanks', () => {
    const markdown = markdownOf((page) => {
      page.text('1.', 50, 100).text('one', 65, 100).text('–', 65, 112).text('inner', 77, 112)
      page.text('–', 65, 124).text('another', 77, 124).text('2.', 50, 136).text('two', 65, 136)
    })
    expect(markdown).toBe('1. one\n   - inner\n   - another\n2. two\n')
  })

  it.each([
    ['1)', '2)'],
    ['(1)', '(2)'],
    ['a.', 'b.'],
    ['(a)', '(b)'],
    ['i)', 'ii)'],
  ])('are counted as %s and %s', (first, second) => {
    const markdown = markdownOf((page) => {
      page.text(first, 50, 100).text('one', 70, 100).text(second, 50, 112).text('two', 70, 112)
    })
    expect(markdown).toBe('1. one\n2. two\n')
  })

  it('are not lines of prose that begin with a number or a dash', () => {
    const markdown = markdownOf((page) => {
      page.lines(['This was in the year', '1998. It went on', '– as was said – for', 'years.'], 50, 100, { width: 400 })
    })
    expect(markdown).toBe('This was in the year 1998. It went on – as was said – for years.\n')
  })

  it('escape what would be a list but is a paragraph', () => {
    expect(markdownOf((page) => page.text('1998. A good year', 50, 100))).toBe('1998\\. A good year\n')
  })

  it('hold further paragraphs of an item', () => {
    const markdown = markdownOf((page) => {
      page.text('Intro that is long enough.', 50, 80, { width: 400 })
      page.text('•', 60, 100).text('first item.', 72, 100).text('More of it.', 72, 124).text('•', 60, 148)
      page.text('second item', 72, 148)
    })
    expect(markdown).toBe('Intro that is long enough.\n\n- first item.\n\n  More of it.\n\n- second item\n')
  })

  it('are made of tables of contents, without the dots', () => {
    const markdown = markdownOf((page) => {
      page.text('1 Start . . . . . . . . . . 2', 50, 100).text('1.1 More . . . . . . . . . . 3', 65, 112)
    })
    expect(markdown).toBe('- 1 Start … 2\n  - 1.1 More … 3\n')
  })
})

const BOLD = { isBold: true, font: 'F2' }
const CODE = { isFixedPitch: true, font: 'F3', width: 24 }

describe('marked words of a PDF', () => {
  it('are bold, italic or code within running text', () => {
    const markdown = markdownOf((page) => {
      page.text('one', 50, 100).text('two', 68, 100, BOLD).text('three', 86, 100).text('four', 114, 100, CODE)
      page.text('five', 141, 100, { isItalic: true }).text('six and seven', 164, 100)
    })
    expect(markdown).toBe('one **two** three `four` *five* six and seven\n')
  })

  it('are one piece over a line end', () => {
    const markdown = markdownOf((page) => {
      page.text('this begins', 50, 100, { width: 100 }).text('bold', 155, 100, { ...BOLD, width: 295 })
      page.text('words', 50, 112, BOLD).text('and ends', 78, 112)
    })
    expect(markdown).toBe('this begins **bold words** and ends\n')
  })

  it('are links where a link covers them, and only those', () => {
    const markdown = markdownOf((page) => {
      page.text('read the guide today', 50, 100).link(95, 90, 25, 13, 'https://example.org/guide')
    })
    expect(markdown).toBe('read the [guide](https://example.org/guide) today\n')
  })

  it('are bare addresses where the text is the address', () => {
    const url = 'https://example.org/a_b'
    const markdown = markdownOf((page) => page.text(`see ${url} now`, 50, 100).link(70, 90, url.length * 5, 13, url))
    expect(markdown).toBe(`see <${url}> now\n`)
  })

  it('keeps text behind a bare URL from being a tag', () => {
    expect(markdownOf((page) => page.text('see www.e.org<img onerror=x> now', 50, 100))).toBe(
      'see www.e.org&lt;img onerror=x> now\n',
    )
  })

  it('are raised and lowered where small text stands off the baseline', () => {
    const markdown = markdownOf((page) => {
      page.text('E = mc', 50, 100).text('2', 80.2, 96.5, { fontSize: 7 }).text('and H', 87, 100)
      page.text('2', 112.2, 102, { fontSize: 7 }).text('O', 116, 100)
    })
    expect(markdown).toBe('E = mc<sup>2</sup> and H<sub>2</sub>O\n')
  })

  it('escape what would be Markdown', () => {
    expect(markdownOf((page) => page.text('a *b* and <i> or snake_case', 50, 100))).toBe(
      'a \\*b\\* and \\<i> or snake_case\n',
    )
  })
})

describe('code of a PDF', () => {
  const LOOK = { isFixedPitch: true, font: 'F3', fontSize: 10 }
  const at = (text: string): typeof LOOK & { width: number } => ({ ...LOOK, width: text.length * 6 })

  it('is fenced, with its indentation and its blank lines', () => {
    const markdown = markdownOf((page) => {
      page.text('Look:', 50, 80).text('if x:', 60, 100, at('if x:')).text('return', 84, 112, at('return'))
      page.text('done()', 60, 136, at('done()')).text('After it.', 50, 160)
    })
    expect(markdown).toBe('Look:\n\n```\nif x:\n    return\n\ndone()\n```\n\nAfter it.\n')
  })

  it('keeps the distance of its pieces', () => {
    const markdown = markdownOf((page) => {
      page.text('Options of the program:', 50, 80)
      page.text('-a', 60, 100, at('-a')).text('all', 108, 100, at('all')).text('-b', 60, 112, at('-b'))
    })
    expect(markdown).toContain('```\n-a      all\n-b\n```')
  })

  it('has a fence longer than any in it', () => {
    const markdown = markdownOf((page) => page.text('Text.', 50, 80).text('```', 50, 100, at('```')))
    expect(markdown).toContain('````\n```\n````')
  })
})
