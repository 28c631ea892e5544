import {
  type EngineInput,
  type EngineMetadata,
  type EngineOutput,
  extensionOf,
  mediaTypeOf,
  NO_METADATA,
} from '../model/document.js'
import { decodeText } from './charset.js'

/** The text of a document with `\n` as line end and without NUL characters. */
export function plainText({ bytes, contentType }: EngineInput): string {
  return decodeText(bytes, contentType).replaceAll(/\r\n?/g, '\n').replaceAll('\0', '')
}

/** Removes leading blank lines and trailing blanks; the result is '' or ends with one `\n`. */
function trimmedLines(text: string): string {
  const end = text.trimEnd().length
  if (end === 0) return ''
  const firstWord = text.length - text.trimStart().length
  return `${text.slice(text.lastIndexOf('\n', firstWord) + 1, end)}\n`
}

const LONGEST_CHARACTERS = 2048
/** Part of a file in which a first-level heading is its title. */
const TITLE_CHARACTERS = 20_000

/** Markdown is returned unchanged. Its title comes from the front matter, else from the first heading of level 1. */
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

/** Value of a key in YAML front matter: a scalar or a bracketed list on one line. */
function fieldOf(frontMatter: string, name: string): string {
  const prefix = `${name}:`
  const line = frontMatter.split('\n').find((candidate) => candidate.toLowerCase().startsWith(prefix))
  const value = line?.slice(prefix.length).trim() ?? ''
  const items = /^\[(.*)\]$/.exec(value)?.[1]?.split(',') ?? [value]
  const plain = items.map((item) => item.trim().replace(/^(["'])(.*)\1$/, '$2'))
  return plain.join(', ').slice(0, LONGEST_CHARACTERS)
}

/** Text of the first heading of level 1 near the start; '' without one. */
export const titleOfMarkdown = (markdown: string): string => firstHeading(markdown.slice(0, TITLE_CHARACTERS))

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

/** Names of languages in fences, by extension, where they differ. */
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

/** The language of code or data, by declared type, else by extension; undefined for prose. */
function languageOf({ contentType, name }: EngineInput): string | undefined {
  const type = mediaTypeOf(contentType)
  const suffix = /\+(json|xml|yaml)$/.exec(type)?.[1]
  return suffix ?? BY_TYPE.get(type) ?? BY_EXTENSION.get(extensionOf(name))
}

/**
 * Plain text is returned unchanged, line by line: its own structure is more useful than escapes. Code and data, by declared
 * type or extension, are written in a fence with the name of the language.
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
