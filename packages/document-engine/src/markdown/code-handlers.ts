import type { Inline } from './document-model.js'
import type { Handler, Reading, Style } from './element-handler.js'
import { collapseBlanks, plainLines } from './escape-markdown.js'
import {
  attributeOf,
  childrenOf,
  classesOf,
  descendantsOf,
  hasAttribute,
  type MarkupNode,
  tagOf,
  textOf,
  wholeText,
} from './markup-node.js'
import { linkTarget } from './media-handlers.js'

// Classes that highlighters give to line numbers.
const GUTTER =
  /^(?:gutter|gl|linenos?|lineno|lnt?|line-?numbers?-rows|line-?number|linenumber|linenodiv|hljs-ln-(?:numbers|n|line-numbers?)|blob-num|rouge-gutter|react-syntax-highlighter-line-number)$/i
const LINE = /^(?:line|code-line|token-line|view-line|cm-line|codemirror-line|crayon-line|ec-line|highlight-line)$/i
const LINE_TAGS: ReadonlySet<string> = new Set(['div', 'p', 'li', 'tr'])
const SKIPPED_TAGS: ReadonlySet<string> = new Set(['script', 'style', 'template', 'button', 'svg'])
const DEEPEST = 512

/** The lines of a code block without highlighting and line numbers; blanks are kept. */
function codeText(root: MarkupNode): string {
  const parts: string[] = []
  let endsLine = true
  const add = (text: string): void => {
    if (text === '') return
    parts.push(text)
    endsLine = text.endsWith('\n')
  }
  const walk = (node: MarkupNode, depth: number): void => {
    for (const child of childrenOf(node)) {
      const text = textOf(child)
      if (text !== undefined) add(plainLines(text))
      const tag = tagOf(child)
      if (tag === 'br') add('\n')
      const isText = tag === '' || tag === 'br'
      if (isText || SKIPPED_TAGS.has(tag) || isGutter(child) || depth > DEEPEST) continue
      if (!endsLine && startsLine(child, tag)) add('\n')
      walk(child, depth + 1)
      if (!endsLine && LINE_TAGS.has(tag)) add('\n')
    }
  }
  walk(root, 0)
  // Not `(?:[ \t]*\n)+`: a repeated group, like a repeated set, has no stack for ten million (escape-markdown.ts).
  return parts
    .join('')
    .replace(/^[ \t\n]*\n/, '')
    .trimEnd()
}

function isGutter(node: MarkupNode): boolean {
  return hasAttribute(node, 'class') && classesOf(node).some((name) => GUTTER.test(name))
}

function startsLine(node: MarkupNode, tag: string): boolean {
  if (LINE_TAGS.has(tag)) return true
  // Some pages have one `<code>` per line.
  if (tag === 'code') return node.parentNode !== null && tagOf(node.parentNode) === 'pre'
  return hasAttribute(node, 'class') && classesOf(node).some((name) => LINE.test(name))
}

const TABLE_PART = /^(?:tbody|tr|td|div|pre)$/
const LANGUAGE_CLASS = /^(?:language|lang|highlight-source|highlight-text|src|syntax|brush)[-:](?<name>.+)$/i
const HIGHLIGHTER_CLASS = /^(?:hljs|sourcecode|highlight|codehilite|prettyprint|code|brush:|src)$/i
const KNOWN_LANGUAGE =
  /^(?:bash|c|c\+\+|clojure|cmake|cpp|csharp|cs|css|dart|diff|dockerfile|elixir|elm|erlang|fish|fortran|go|golang|graphql|groovy|haskell|hcl|html|http|ini|java|javascript|js|json|jsonc|jsx|julia|kotlin|latex|less|lisp|lua|makefile|markdown|matlab|nginx|nix|ocaml|objectivec|perl|php|powershell|proto|protobuf|ps1|puppet|py|python|r|rb|ruby|rs|rust|sass|scala|scss|sh|shell|sql|svelte|swift|terraform|toml|ts|tsx|typescript|vb|vim|vue|wasm|xml|yaml|yml|zig|zsh)$/i
const NO_LANGUAGE = /^(?:none|plain|plaintext|text|txt|nohighlight|no-highlight|auto|undefined|default)$/i

/** The declared language of a code block in lower case; '' without one. */
export function codeLanguage(pre: MarkupNode): string {
  const carriers = [...programsIn(pre, PROGRAM_DEPTH), pre, ...parentsOf(pre, 3)]
  for (const carrier of carriers) {
    const language = languageOf(carrier)
    if (language !== '') return NO_LANGUAGE.test(language) ? '' : language
  }
  return ''
}

/** Levels down to the code in a table that holds it beside its line numbers. */
const PROGRAM_DEPTH = 6

function* programsIn(node: MarkupNode, depth: number): Generator<MarkupNode> {
  for (const child of childrenOf(node)) {
    if (tagOf(child) === 'code') yield child
    else if (depth > 1 && TABLE_PART.test(tagOf(child))) yield* programsIn(child, depth - 1)
  }
}

function parentsOf(node: MarkupNode, count: number): MarkupNode[] {
  const parents: MarkupNode[] = []
  for (let parent = node.parentNode; parent !== null && parents.length < count; parent = parent.parentNode) {
    if (tagOf(parent) !== 'div' && tagOf(parent) !== 'figure' && tagOf(parent) !== 'code') break
    parents.push(parent)
  }
  return parents
}

function languageOf(node: MarkupNode): string {
  const classes = classesOf(node)
  const candidates = [
    ...classes.map((name) => LANGUAGE_CLASS.exec(name)?.groups?.['name'] ?? ''),
    /\bbrush:\s*([\w+#-]+)/i.exec(classes.join(' '))?.[1] ?? '',
    attributeOf(node, 'data-lang'),
    attributeOf(node, 'data-language'),
    ...(tagOf(node) === 'pre' ? [attributeOf(node, 'lang')] : []),
    ...(classes.some((name) => HIGHLIGHTER_CLASS.test(name))
      ? classes.filter((name) => KNOWN_LANGUAGE.test(name))
      : []),
  ]
  const name = candidates.find((candidate) => /^[\w+#.-]{1,30}$/.test(candidate.replace(/[;,{].*$/, '')))
  return name === undefined
    ? ''
    : name
        .replace(/[;,{].*$/, '')
        .replace(/^html-basic$/i, 'html')
        .toLowerCase()
}

/** The code in a table that holds it beside its line numbers; undefined for other tables. */
export function codeTableText(table: MarkupNode): string | undefined {
  let cells = 0
  let numbers = 0
  const lines: string[] = []
  for (const node of descendantsOf(table)) {
    if (tagOf(node) === 'table' || tagOf(node) === 'th') return undefined
    if (tagOf(node) !== 'td') continue
    cells += 1
    if (isLineNumbers(node)) numbers += 1
    else if (numbers === 0) return undefined
    else lines.push(codeText(node))
  }
  return numbers > 0 && numbers * 2 === cells ? lines.join('\n') : undefined
}

function isLineNumbers(cell: MarkupNode): boolean {
  if (isGutter(cell) || hasAttribute(cell, 'data-line-number')) return true
  const first = [...childrenOf(cell)].find((child) => tagOf(child) !== '')
  if (first === undefined) return false
  if (isGutter(first)) return true
  return ['pre', 'code'].includes(tagOf(first)) && /^(?:\d+(?:\s+\d+)*)?$/.test(codeText(first).trim())
}

export const readBlockCode: Handler = (element, reading, style) => {
  const text = codeText(element)
  reading.endParagraph()
  // A code block without text may hold pictures.
  if (text === '') readPictures(element, reading, style)
  else reading.addBlock({ kind: 'code', language: codeLanguage(element), text })
  reading.endParagraph()
}

export const readInlineCode: Handler = (element, reading, style) => {
  if (!style.isInLink && [...childrenOf(element)].some((child) => tagOf(child) === 'br')) {
    readBlockCode(element, reading, style)
    return
  }
  const whole = collapseBlanks(wholeText(element))
  const text = whole.trim()
  if (text === '') {
    readPictures(element, reading, style)
    return
  }
  if (whole.startsWith(' ')) reading.addText(' ', style)
  const url = style.isInLink ? undefined : onlyLinkTarget(element, text, reading)
  const code: Inline = { kind: 'code', text, marks: url === undefined ? style.marks : 0 }
  reading.addPiece(url === undefined ? code : { kind: 'link', url, content: [code], marks: style.marks })
  if (whole.endsWith(' ')) reading.addText(' ', style)
}

function readPictures(element: MarkupNode, reading: Reading, style: Style): void {
  for (const node of descendantsOf(element)) if (tagOf(node) === 'img') reading.readNode(node, style)
}

/** The URL of a link around all of the code; Markdown has no links within code. */
function onlyLinkTarget(code: MarkupNode, text: string, reading: Reading): string | undefined {
  for (const node of descendantsOf(code)) {
    if (tagOf(node) !== 'a') continue
    if (collapseBlanks(wholeText(node)).trim() !== text) return undefined
    return linkTarget(attributeOf(node, 'href'), reading.baseUrl)
  }
  return undefined
}
