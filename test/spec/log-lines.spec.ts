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

interface Source {
  readonly file: string
  readonly text: string
}

const sources: readonly Source[] = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts') && !file.endsWith('.spec.ts') && !file.startsWith('sandbox'))
  .map((file) => ({ file, text: readFileSync(join(ROOT, 'src', file), 'utf8') }))

/** The texts that an expression may come to; of one with holes, what stands before the first. Undefined: no text itself. */
function textsOf(node: ts.Expression): string[] | undefined {
  if (ts.isStringLiteralLike(node)) return [node.text]
  if (ts.isTemplateExpression(node)) return [node.head.text.trim()]
  if (!ts.isConditionalExpression(node)) return undefined
  const [first, second] = [textsOf(node.whenTrue), textsOf(node.whenFalse)]
  return first === undefined || second === undefined ? undefined : [...first, ...second]
}

function nodesOf({ file, text }: Source): ts.Node[] {
  const found: ts.Node[] = []
  const visit = (node: ts.Node): void => {
    found.push(node)
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true))
  return found
}

/** What stands where a message does, in every call of a logger. */
const messages = sources.flatMap((source) =>
  nodesOf(source).flatMap((node) => {
    if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return []
    const { name, expression: target } = node.expression
    const message = node.arguments.at(-1)
    if (!LEVELS.includes(name.text) || !/(?:\blogger|^log)$/.test(target.getText()) || message === undefined) return []
    return [{ file: source.file, level: name.text, message }]
  }),
)

/** Texts that stand elsewhere than in the call of the logger: literals given as a property, passed on or returned. */
const given = (property: string) => (node: ts.Node) =>
  ts.isPropertyAssignment(node) && node.name.getText() === property ? textsOf(node.initializer) : undefined
const returned = (node: ts.Node): string[] | undefined =>
  ts.isReturnStatement(node) && node.expression !== undefined ? textsOf(node.expression) : undefined
const passed = (method: string) => (node: ts.Node) => {
  if (!ts.isCallExpression(node) || node.expression.getText() !== `this.${method}`) return undefined
  const text = node.arguments.at(-1)
  return text === undefined ? undefined : textsOf(text)
}
const none = (): undefined => undefined

/** Messages that are held in variables, and where their texts are; every other one is a literal. */
const HELD: Readonly<Record<string, { readonly in: RegExp; readonly text: (node: ts.Node) => string[] | undefined }>> =
  {
    'warn of failure in common/database/hourly-sweep.ts': { in: /-retention\.ts$/, text: given('failure') },
    'info of note in main.ts': { in: /^cluster\/worker-count\.ts$/, text: returned },
    'error of message in common/database/store-database.ts': {
      in: /^common\/database\/store-database\.ts$/,
      text: passed('announceDown'),
    },
    // Handed on from `reportReload`, whose own calls of a logger are among the messages.
    'info of message in admin/reload.service.ts': { in: /^admin\/reload\.service\.ts$/, text: none },
    'error of message in admin/reload.service.ts': { in: /^admin\/reload\.service\.ts$/, text: none },
    // The framework's own words.
    'warn of String(message) in common/observability/nest-logger.ts': { in: /nest-logger\.ts$/, text: none },
    'error of String(message) in common/observability/nest-logger.ts': { in: /nest-logger\.ts$/, text: none },
    // Each warning names the setting it is about: the page speaks of them together.
    'warn of warning in gateway.ts': { in: /^config\/config-warnings\.ts$/, text: none },
  }

const placeOf = ({ file, level, message }: (typeof messages)[number]): string =>
  `${level} of ${message.getText()} in ${file}`

function linesOf(each: (typeof messages)[number]): LogLine[] {
  const held = HELD[placeOf(each)]
  const places = sources.filter(({ file }) => held?.in.test(file))
  const texts = textsOf(each.message) ?? places.flatMap(nodesOf).flatMap((node) => held?.text(node) ?? [])
  return texts.map((text) => ({ level: each.level, text, file: each.file }))
}

const page = readFileSync(join(ROOT, 'docs/operations.md'), 'utf8')

/** Rows of the table that lists lines: the texts of the first cell, each with the level of the second. */
const listed = [...page.matchAll(/^\| ((?:`[^`]+`(?:, )?)+) +\| (info|warn|error|fatal) +\| /gm)].flatMap(
  ([, cell = '', level = '']) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, text = '']) => ({ level, text: text.replace(/ ?…$/, '') })),
)

describe('docs/operations.md, Logs', () => {
  it('lists every line that the gateway writes, with its level', () => {
    const written = messages.flatMap(linesOf)
    expect(written.length).toBeGreaterThan(35)
    const missing = written.filter(({ level, text }) => !listed.some((row) => row.level === level && row.text === text))
    expect(missing).toEqual([])
  })

  it('knows where the texts are that are not written out where they are logged', () => {
    const held = messages.filter(({ message }) => textsOf(message) === undefined)
    expect(held.map(placeOf).sort()).toEqual(Object.keys(HELD).sort())
    const texts = new Map(held.map((each) => [placeOf(each), linesOf(each).length]))
    expect([...texts].filter(([place, count]) => count === 0 && HELD[place]?.text !== none)).toEqual([])
  })

  it('lists none that nobody writes', () => {
    const all = sources.map(({ text }) => text).join('\n')
    expect(listed.filter(({ text }) => !all.includes(text))).toEqual([])
    expect(new Set(listed.map(({ text, level }) => `${level} ${text}`)).size).toBe(listed.length)
  })
})
