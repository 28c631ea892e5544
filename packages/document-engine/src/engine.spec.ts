import { spawnSync } from 'node:child_process'
import { describe, expect, it } from '@jest/globals'
import { coreProperties, presentationFile, slideParagraph, slideShape } from '../../../test/support/office-files.js'

const LONG = 10_000_000
const BLANKS = ' '.repeat(LONG)

const slides = (paragraph: string, core: string): Uint8Array =>
  presentationFile([{ shapes: slideShape(slideParagraph(paragraph)) }], { 'docProps/core.xml': coreProperties(core) })

/** V8 compiles regular expressions so itself in a process that holds much of their code: then long runs cost memory. */
function readUnoptimized(content: string | Uint8Array, contentType: string): unknown {
  const engine = new URL('../dist/engine.js', import.meta.url).href
  const script = `
    const { readFileSync } = await import('node:fs')
    const { readDocument } = await import(${JSON.stringify(engine)})
    const input = { bytes: readFileSync(0), contentType: ${JSON.stringify(contentType)}, name: '', baseUrl: 'http://a/' }
    const { markdown, metadata } = await readDocument(input, { pages: 500, decodedBytes: 25_000_000 })
    console.log(JSON.stringify([markdown.slice(0, 20).trim(), metadata.title.slice(0, 20)]))`
  const { stdout, stderr } = spawnSync(
    process.execPath,
    ['--no-regexp-optimization', '--input-type=module', '--eval', script],
    { input: content, encoding: 'utf8' },
  )
  return stdout === '' ? stderr : JSON.parse(stdout)
}

describe('A process whose regular expressions are not optimized', () => {
  it.each<[string, string | Uint8Array, string, readonly [string, string]]>([
    ['blanks in a page', `<p>x${BLANKS}y`, 'text/html', ['x y', '']],
    ['blanks in a title', slides('x', `<dc:title>a${BLANKS}b</dc:title>`), '', ['x', 'a b']],
    ['backticks in code', `<p><code>${'`'.repeat(LONG)}</code>`, 'text/html', [`\` ${'`'.repeat(18)}`, '']],
  ])('reads ten million %s', (_what, content, contentType, expected) => {
    expect(readUnoptimized(content, contentType)).toEqual(expected)
  })
})
