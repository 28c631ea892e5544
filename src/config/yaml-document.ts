import { isScalar, LineCounter, parseDocument, visit, type Document, type Scalar, type YAMLError } from 'yaml'
import type { FaultList } from './config-fault.js'

/** One anchor may be used by every one of a few hundred channels; products of nested aliases stay below this as well. */
const MAX_ALIASES = 1000

/** Own words for the parser's codes: its messages quote the file, and the file holds secrets. */
const SYNTAX_MESSAGES: Partial<Record<YAMLError['code'], string>> = {
  BAD_ALIAS: 'malformed anchor or alias',
  BAD_DIRECTIVE: 'malformed or unknown directive',
  BAD_DQ_ESCAPE: 'unknown escape sequence in a double-quoted string',
  BAD_INDENT: 'wrong indentation',
  BLOCK_AS_IMPLICIT_KEY: 'a value that holds ": " must be put in quotes, and a nested map starts on its own line',
  DUPLICATE_KEY: 'the same key stands twice in one map',
  MISSING_CHAR: 'a quote, colon, comma or closing bracket is missing',
  MULTIPLE_DOCS: 'the file must hold one document',
  NON_STRING_KEY: 'a key must be a plain word',
  TAB_AS_INDENT: 'tabs must not be used for indentation',
  TAG_RESOLVE_FAILED: 'tags are not supported',
}
const PLACEHOLDER_HINT = '; inside { } or [ ] a ${NAME} must be put in quotes'

/**
 * Parses YAML 1.2 text to plain values. Adds a fault with line and column for everything that is not sound YAML, and
 * returns undefined when the text is too broken to look further.
 */
export function readYaml(text: string, faults: FaultList): unknown {
  try {
    return readDocument(text, faults)
  } catch (error) {
    // The parser recurses: brackets nested by the thousand exhaust the stack instead of giving an error.
    if (!(error instanceof RangeError)) throw error
    faults.add('document', 'is nested too deeply')
    return undefined
  }
}

function readDocument(text: string, faults: FaultList): unknown {
  const lineCounter = new LineCounter()
  const document = parseDocument(text, {
    lineCounter,
    prettyErrors: false,
    // With 'silent' the parser takes the first of several documents and says nothing.
    logLevel: 'error',
    stringKeys: true,
    // The parser's own check compares every key with every other: a long map would hold up a reload for seconds.
    uniqueKeys: false,
    resolveKnownTags: false,
  })
  const problems = [...document.errors, ...document.warnings].map(({ code, pos }) => ({ code, offset: pos[0] }))
  reportSyntax([...problems, ...duplicateKeys(document)], text.split('\n'), lineCounter, faults)
  const readable = problems.every(({ code }) => code === 'TAG_RESOLVE_FAILED')
  return readable ? toPlainValue(document, faults) : undefined
}

interface Problem {
  readonly code: YAMLError['code']
  readonly offset: number
}

function duplicateKeys(document: Document.Parsed): Problem[] {
  const duplicates: Problem[] = []
  visit(document, {
    Map(_key, { items }) {
      const seen = new Set<unknown>()
      for (const { key } of items.filter((pair) => isScalar(pair.key))) {
        const { value, range } = key as Scalar
        if (seen.has(value)) duplicates.push({ code: 'DUPLICATE_KEY', offset: range?.[0] ?? 0 })
        seen.add(value)
      }
    },
  })
  return duplicates
}

/** One fault per line: a single slip makes the parser stumble over everything behind it. */
function reportSyntax(problems: Problem[], lines: string[], lineCounter: LineCounter, faults: FaultList): void {
  const reported = new Set<number>()
  for (const { code, offset } of problems) {
    const { line, col } = lineCounter.linePos(offset)
    if (reported.has(line)) continue
    reported.add(line)
    const isPlaceholder =
      hasPlaceholderInBrackets(lines[line - 1] ?? '') && /^(?:MISSING_CHAR|UNEXPECTED_TOKEN)$/.test(code)
    const message = SYNTAX_MESSAGES[code] ?? 'not valid YAML'
    faults.add(`line ${line}, column ${col}`, isPlaceholder ? message + PLACEHOLDER_HINT : message)
  }
}

function hasPlaceholderInBrackets(line: string): boolean {
  const bracket = line.search(/[[{,]/)
  return bracket >= 0 && line.lastIndexOf('${') > bracket
}

function toPlainValue(document: Document.Parsed, faults: FaultList): unknown {
  try {
    return document.toJS({ maxAliasCount: MAX_ALIASES })
  } catch (error) {
    // An alias without its anchor, or an expansion beyond the limit; anything else is a defect of ours.
    if (!(error instanceof ReferenceError)) throw error
    faults.add(
      'document',
      `every alias needs an anchor before it, and no anchor may be used more than ${MAX_ALIASES} times`,
    )
    return undefined
  }
}
