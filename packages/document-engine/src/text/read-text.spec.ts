import { describe, expect, it } from '@jest/globals'
import type { EngineInput } from '../model/document.js'
import { readMarkdown, readText } from './read-text.js'

const input = (text: string, name = '', contentType = ''): EngineInput => ({
  bytes: new TextEncoder().encode(text),
  contentType,
  name,
  baseUrl: '',
})

describe('a plain text', () => {
  const textOf = (text: string, name?: string, contentType?: string): string =>
    readText(input(text, name, contentType)).markdown

  it('is given as it is, with the ends of its lines made alike', () => {
    expect(textOf('1. not *escaped*\r\n    indented\r\rlast')).toBe('1. not *escaped*\n    indented\n\nlast\n')
  })

  it('loses blank lines around it and zero bytes, but not the indent of its first line', () => {
    expect(textOf('\n  \n  first\0\n\n')).toBe('  first\n')
  })

  it.each(['', ' \n\t\n '])('of blanks alone is empty: %j', (text) => {
    expect(textOf(text)).toBe('')
  })

  it('of data or code stands in a fence that names its language', () => {
    expect(textOf('{"a":1}', 'x.json')).toBe('```json\n{"a":1}\n```\n')
    expect(textOf('{"a":1}', '', 'application/ld+json; charset=utf-8')).toBe('```json\n{"a":1}\n```\n')
    expect(textOf('<a/>', 'x', 'application/rss+xml')).toBe('```xml\n<a/>\n```\n')
    expect(textOf('a: 1', 'x.yml', 'text/plain')).toBe('```yaml\na: 1\n```\n')
    expect(textOf('print()', 'x.py')).toBe('```python\nprint()\n```\n')
  })

  it('whose fence would be closed too early gets a longer one', () => {
    expect(textOf('"````"', 'x.json')).toBe('`````json\n"````"\n`````\n')
  })

  it.each(['notes.constructor', 'notes.valueof', 'notes.unknown'])('called %s is prose', (name) => {
    expect(textOf('words', name)).toBe('words\n')
  })
})

describe('a Markdown file', () => {
  it('passes through', () => {
    const markdown = '# Kettles\n\n| a | b |\n| - | - |\n\n<b>x</b> &amp;\n'
    expect(readMarkdown(input(markdown.replaceAll('\n', '\r\n'))).markdown).toBe(markdown)
  })

  it.each([
    ['---\ntitle: Tea\n---\n# Other', 'Tea'],
    ['---\nTitle: "Tea: a story"\n---\n', 'Tea: a story'],
    ["---\nlayout: x\ntitle: 'Tea'\n...\n", 'Tea'],
    ['---\nlayout: x\n---\n\n# Heading #\n', 'Heading'],
    ['words\n\n  # Heading\n\n# Second', 'Heading'],
    ['```sh\n# comment\n```\n# Heading', 'Heading'],
    ['## Only a chapter', ''],
    ['title: no front matter', ''],
    ['---\ntitle: never closed', ''],
  ])('has the title that it gives itself: %j', (markdown, title) => {
    expect(readMarkdown(input(markdown)).metadata.title).toBe(title)
  })

  it('has the description and the keywords of its front matter', () => {
    const { metadata } = readMarkdown(input('---\ndescription: About tea\ntags: [green, "black"]\n---\n'))
    expect(metadata).toMatchObject({ description: 'About tea', keywords: 'green, black' })
  })
})
