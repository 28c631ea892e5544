import { describe, expect, it } from '@jest/globals'
import { structuredText } from './structured-text.js'

describe('the text in the data of a page', () => {
  it('is the longest one, wherever it lies', () => {
    const scripts = [
      JSON.stringify({
        '@graph': [{ '@type': 'Product', description: 'A kettle.' }, { article: { articleBody: 'Long story.' } }],
      }),
      JSON.stringify([{ text: 'Short' }]),
    ]
    expect(structuredText(scripts)).toBe('Long story.')
  })

  it.each([
    ['there is none', []],
    ['the data is broken', ['{"articleBody": "x"']],
    ['it is no text', ['{"articleBody": {"text": 5}}', 'null', '"x"']],
    ['it lies deeper than data of that kind', [`${'['.repeat(100)}{"text":"x"}${']'.repeat(100)}`]],
    ['it is nested without an end', ['['.repeat(500_000)]],
  ])('is empty when %s', (_what, scripts) => {
    expect(structuredText(scripts)).toBe('')
  })
})
