import { readFileSync } from 'node:fs'
import { parseHTML } from 'linkedom'
import ts from 'typescript'

const SPEC = new URL('../../../packages/document-engine/src/markdown/html-to-markdown.spec.ts', import.meta.url)
/** Properties and bounds of time, which name no Markdown. */
const OTHER_SUITES = new Set(['Hostile HTML', 'Markdown made of any HTML'])

/**
 * Runs the cases of the writer's specification with any writer: {assertions, sameMarkdown, sameRendered}, of which the last
 * counts Markdown that is written in another way and rendered as the same HTML.
 */
export function specAssertions(write, render) {
  const result = { assertions: 0, sameMarkdown: 0, sameRendered: 0 }
  const expect = (markdown) => ({
    toBe(expected) {
      result.sameMarkdown += Number(markdown === expected)
      result.sameRendered += Number(render(markdown) === render(expected))
    },
  })
  const attempt = (test, values) => {
    result.assertions += 1
    try {
      test(...values)
    } catch {
      // Counted as an assertion that does not hold.
    }
  }
  const it = Object.assign((_name, test) => attempt(test, []), {
    each: (rows) => (_name, test) => rows.forEach((row) => attempt(test, row)),
  })
  const describe = (name, suite) => OTHER_SUITES.has(name) || suite()
  const source = readFileSync(SPEC, 'utf8').replace(/^import .*$/gm, '')
  const { outputText } = ts.transpileModule(source, {
    compilerOptions: { module: ts.ModuleKind.None, target: 'es2022' },
  })
  const htmlToMarkdown = (tree, { baseUrl }) => write(tree, baseUrl)
  const run = new Function('describe', 'it', 'expect', 'parseHTML', 'htmlToMarkdown', outputText)
  run(describe, it, expect, parseHTML, htmlToMarkdown)
  return result
}
