import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from '@jest/globals'
import ts from 'typescript'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** What an operator sees unless `logging.level` asks for more. */
const LEVELS: readonly string[] = ['info', 'warn', 'error', 'fatal']

interface LogLine {
  readonly level: string
  readonly text: string
  readonly file: string
}

const sources = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts') && !file.endsWith('.spec.ts') && !file.startsWith('sandbox'))
  .map((file) => ({ file, text: readFileSync(join(ROOT, 'src', file), 'utf8') }))

/** The texts that an expression may come to; of one with holes, what stands before the first. */
function textsOf(node: ts.Expression): string[] {
  if (ts.isStringLiteralLike(node)) return [node.text]
  if (ts.isTemplateExpression(node)) return [node.head.text.trim()]
  if (ts.isConditionalExpression(node)) return [...textsOf(node.whenTrue), ...textsOf(node.whenFalse)]
  return []
}

function linesOf({ file, text }: (typeof sources)[number]): LogLine[] {
  const found: LogLine[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression)) {
      const { name, expression: target } = node.expression
      const message = node.arguments.at(-1)
      if (LEVELS.includes(name.text) && /(?:\blogger|^log)$/.test(target.getText()) && message !== undefined)
        found.push(...textsOf(message).map((said) => ({ level: name.text, text: said, file })))
    }
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true))
  return found
}

const page = readFileSync(join(ROOT, 'docs/operations.md'), 'utf8')

/** Rows of the table that lists lines: the texts of the first cell, each with the level of the second. */
const listed = [...page.matchAll(/^\| ((?:`[^`]+`(?:, )?)+) +\| (info|warn|error|fatal) +\| /gm)].flatMap(
  ([, cell = '', level = '']) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, text = '']) => ({ level, text: text.replace(/ ?…$/, '') })),
)

describe('docs/operations.md, Logs', () => {
  it('lists every line that the gateway writes, with its level', () => {
    const written = sources.flatMap(linesOf)
    expect(written.length).toBeGreaterThan(35)
    const missing = written.filter(({ level, text }) => !listed.some((row) => row.level === level && row.text === text))
    expect(missing).toEqual([])
  })

  it('lists none that nobody writes', () => {
    const all = sources.map(({ text }) => text).join('\n')
    expect(listed.filter(({ text }) => !all.includes(text))).toEqual([])
    expect(new Set(listed.map(({ text, level }) => `${level} ${text}`)).size).toBe(listed.length)
  })
})
