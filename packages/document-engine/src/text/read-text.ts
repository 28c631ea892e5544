import {
  type EngineInput,
  type EngineMetadata,
  type EngineOutput,
  extensionOf,
  mediaTypeOf,
  NO_METADATA,
} from '../model/document.js'
import { decodeText } from './charset.js'

/** The text of a document with `\n` alone at the ends of lines and without characters that no file format can hold. */
export function plainText({ bytes, contentType }: EngineInput): string {
  return decodeText(bytes, contentType).replaceAll(/\r\n?/g, '\n').replaceAll('\0', '')
}

/** Without blank lines before and blanks behind; '' or one `\n` at the end. */
function trimmedLines(text: string): string {
  const end = text.trimEnd().length
  if (end === 0) return ''
  const firstWord = text.length - text.trimStart().length
  return `${text.slice(text.lastIndexOf('\n', firstWord) + 1, end)}\n`
}

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

/** Languages as fences name them, where the name is not the extension itself. */
const BY_EXTENSION: ReadonlyMap<string, string> = new Map<string, string>(
  Object.entries({
    bash: 'bash',
    bat: 'bat',
    c: 'c',
    cc: 'cpp',
    cjs: 'javascript',
    cpp: 'cpp',
    cs: 'csharp',
    css: 'css',
    diff: 'diff',
    go: 'go',
    graphql: 'graphql',
    h: 'c',
    hpp: 'cpp',
    ini: 'ini',
    java: 'java',
    js: 'javascript',
    json: 'json',
    jsonl: 'json',
    jsx: 'jsx',
    kt: 'kotlin',
    less: 'less',
    lua: 'lua',
    mjs: 'javascript',
    ndjson: 'json',
    patch: 'diff',
    php: 'php',
    pl: 'perl',
    proto: 'protobuf',
    ps1: 'powershell',
    py: 'python',
    r: 'r',
    rb: 'ruby',
    rs: 'rust',
    rss: 'xml',
    scala: 'scala',
    scss: 'scss',
    sh: 'bash',
    sql: 'sql',
    swift: 'swift',
    tex: 'latex',
    toml: 'toml',
    ts: 'typescript',
    tsx: 'tsx',
    xml: 'xml',
    yaml: 'yaml',
    yml: 'yaml',
  }),
)

const BY_TYPE: ReadonlyMap<string, string> = new Map<string, string>(
  Object.entries({
    'application/ecmascript': 'javascript',
    'application/javascript': 'javascript',
    'application/json': 'json',
    'application/sql': 'sql',
    'application/toml': 'toml',
    'application/x-javascript': 'javascript',
    'application/x-ndjson': 'json',
    'application/x-sh': 'bash',
    'application/x-yaml': 'yaml',
    'application/xml': 'xml',
    'application/yaml': 'yaml',
    'text/css': 'css',
    'text/javascript': 'javascript',
    'text/json': 'json',
    'text/x-c': 'c',
    'text/x-java-source': 'java',
    'text/x-python': 'python',
    'text/x-yaml': 'yaml',
    'text/xml': 'xml',
    'text/yaml': 'yaml',
  }),
)

/** The language of a text that is code or data by its claim, else by its extension; undefined for prose. */
function languageOf({ contentType, name }: EngineInput): string | undefined {
  const type = mediaTypeOf(contentType)
  const suffix = /\+(json|xml|yaml)$/.exec(type)?.[1]
  return suffix ?? BY_TYPE.get(type) ?? BY_EXTENSION.get(extensionOf(name))
}

/**
 * A text is given as it is, line by line: who reads it has more of its own structure than of escapes. What a claim or an
 * extension calls code or data stands in a fence that names its language.
 */
export function readText(input: EngineInput): EngineOutput {
  const text = trimmedLines(plainText(input))
  const language = text === '' ? undefined : languageOf(input)
  const markdown = language === undefined ? text : fenced(text, language)
  return { kind: 'text', metadata: NO_METADATA, html: '', markdown, pages: 1 }
}

function fenced(text: string, language: string): string {
  let longest = 2
  for (const [run] of text.matchAll(/`{3,}/g)) longest = Math.max(longest, run.length)
  const fence = '`'.repeat(longest + 1)
  return `${fence}${language}\n${text}${fence}\n`
}
