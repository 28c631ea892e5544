import { type EngineInput, type EngineMetadata, type EngineOutput, NO_METADATA } from '../model/document.js'
import { plainText, trimmedLines } from './plain-text.js'

const LONGEST_CHARACTERS = 2048
/** Where a heading of the first level is a title rather than a chapter of something. */
const TITLE_CHARACTERS = 20_000

/** Markdown is given as it is. Its title is that of its front matter, else its first heading of the first level. */
export function readMarkdown(input: EngineInput): EngineOutput {
  const markdown = trimmedLines(plainText(input))
  return { kind: 'markdown', metadata: metadataOf(markdown), html: '', markdown, pages: 1 }
}

function metadataOf(markdown: string): EngineMetadata {
  const frontMatter = /^---[^\S\n]*\n([\s\S]{0,20000}?)\n(?:---|\.\.\.)[^\S\n]*(?:\n|$)/.exec(markdown)
  const field = (name: string): string => fieldOf(frontMatter?.[1] ?? '', name)
  const body = markdown.slice(frontMatter?.[0].length ?? 0, TITLE_CHARACTERS)
  return {
    ...NO_METADATA,
    title: field('title') || firstHeading(body),
    description: field('description'),
    keywords: field('keywords') || field('tags'),
  }
}

/** A scalar or a list in brackets on one line: YAML as front matter uses it. */
function fieldOf(frontMatter: string, name: string): string {
  const prefix = `${name}:`
  const line = frontMatter.split('\n').find((candidate) => candidate.toLowerCase().startsWith(prefix))
  const value = line?.slice(prefix.length).trim() ?? ''
  const items = /^\[(.*)\]$/.exec(value)?.[1]?.split(',') ?? [value]
  const plain = items.map((item) => item.trim().replace(/^(["'])(.*)\1$/, '$2'))
  return plain.join(', ').slice(0, LONGEST_CHARACTERS)
}

function firstHeading(body: string): string {
  let isCode = false
  for (const line of body.split('\n')) {
    if (/^ {0,3}(?:```|~~~)/.test(line)) isCode = !isCode
    const heading = isCode ? undefined : /^ {0,3}#[^\S\n]+(\S.*)$/.exec(line)?.[1]
    if (heading !== undefined)
      return heading
        .slice(0, LONGEST_CHARACTERS)
        .replace(/\s+#+\s*$/, '')
        .trim()
  }
  return ''
}
