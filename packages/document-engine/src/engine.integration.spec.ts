import { describe, expect, it } from '@jest/globals'
import PDFDocument from 'pdfkit'
import { runModule, UNOPTIMIZED } from '../../../test/support/module-process.js'
import {
  coreProperties,
  presentationFile,
  slideParagraph,
  slideShape,
  wordFile,
  wordParagraph,
  workbookFile,
} from '../../../test/support/office-files.js'
import { readDocument } from './engine.js'
import { EngineFault, type EngineInput, type EngineLimits, type EngineOutput } from './model/document.js'

const LIMITS: EngineLimits = { pages: 500, decodedBytes: 5_000_000 }

const read = (content: string | Uint8Array, more: Partial<EngineInput> = {}, limits = LIMITS): Promise<EngineOutput> =>
  readDocument(
    {
      bytes: typeof content === 'string' ? new TextEncoder().encode(content) : content,
      contentType: '',
      name: '',
      baseUrl: '',
      ...more,
    },
    limits,
  )

async function pdfOf(text: string): Promise<Uint8Array> {
  const document = new PDFDocument()
  const chunks: Buffer[] = []
  document.on('data', (chunk: Buffer) => chunks.push(chunk))
  document.text(text)
  document.end()
  await new Promise((resolve) => document.once('end', resolve))
  return Uint8Array.from(Buffer.concat(chunks))
}

const sheet = '<sheetData><row><c><v>7</v></c></row></sheetData>'

describe('a document of any kind', () => {
  it.each([
    ['html', '<!doctype html><title>T</title><p>Some words of a page.', 'Some words'],
    ['docx', wordFile(wordParagraph('words')), 'words\n'],
    ['xlsx', workbookFile([{ name: 'S', content: sheet }]), '## S\n\n| 7 |\n| --- |\n'],
    ['pptx', presentationFile([{ shapes: slideShape(slideParagraph('words')) }]), 'words\n'],
    ['text', 'words', 'words\n'],
  ])('is read as %s by its bytes', async (kind, content, markdown) => {
    const output = await read(content, { contentType: 'application/octet-stream', name: 'file.bin' })
    expect(output.kind).toBe(kind)
    expect(output.markdown).toContain(markdown)
  })

  it('is read as PDF by its bytes', async () => {
    const output = await read(await pdfOf('Some words of a page.'), { contentType: 'text/html' })
    expect(output).toMatchObject({ kind: 'pdf', pages: 1 })
    expect(output.markdown).toContain('Some words of a page.')
  })

  it('is read as its claim says where bytes cannot tell', async () => {
    expect((await read('a,b', { contentType: 'text/csv' })).markdown).toBe('| a | b |\n| --- | --- |\n')
    expect((await read('# a', { name: 'x.md' })).metadata.title).toBe('a')
  })
})

describe('the title of a document', () => {
  it('is the name of its file when it has none of its own', async () => {
    expect((await read('words', { name: 'notes.txt' })).metadata.title).toBe('notes.txt')
    expect((await read('# Own', { name: 'notes.md' })).metadata.title).toBe('Own')
  })

  it('of a page is never the name of a file', async () => {
    expect((await read('<html><p>words', { name: 'x.html' })).metadata.title).toBe('')
  })
})

describe('a document that cannot be read', () => {
  it.each([
    ['empty', '', 'no_text', 'The document is empty.'],
    ['blank', ' \n ', 'no_text', 'The document holds no text.'],
    [
      'a workbook of empty sheets',
      workbookFile([{ name: 'S', content: '' }]),
      'no_text',
      'The document holds no text.',
    ],
    ['a picture', 'GIF89a', 'unsupported', 'The document looks like a GIF picture, which cannot be read.'],
    ['damaged', wordFile('').subarray(0, 300), 'broken', 'The file is damaged: its parts cannot be read.'],
  ])('because it is %s is the fault of the document', async (_name, content, fault, message) => {
    const reading = read(content)
    await expect(reading).rejects.toBeInstanceOf(EngineFault)
    await expect(reading).rejects.toMatchObject({ fault, message })
  })

  it('because its text is too long is the fault of the document', async () => {
    await expect(read('x'.repeat(300), {}, { pages: 1, decodedBytes: 100 })).rejects.toMatchObject({
      fault: 'too_large',
    })
  })
})

const LONG = 10_000_000
const BLANKS = ' '.repeat(LONG)

const slides = (paragraph: string, core: string): Uint8Array =>
  presentationFile([{ shapes: slideShape(slideParagraph(paragraph)) }], { 'docProps/core.xml': coreProperties(core) })

function readUnoptimized(content: string | Uint8Array, contentType: string): unknown {
  const engine = new URL('../dist/engine.js', import.meta.url).href
  const script = `
    const { readFileSync } = await import('node:fs')
    const { readDocument } = await import(${JSON.stringify(engine)})
    const input = { bytes: readFileSync(0), contentType: ${JSON.stringify(contentType)}, name: '', baseUrl: 'http://a/' }
    const { markdown, metadata } = await readDocument(input, { pages: 500, decodedBytes: 25_000_000 })
    console.log(JSON.stringify([markdown.slice(0, 20).trim(), metadata.title.slice(0, 20)]))`
  const said = runModule(script, { input: content, flags: UNOPTIMIZED })
  return said.startsWith('[') ? JSON.parse(said) : said
}

describe('A process whose regular expressions are not optimized', () => {
  it.each<[string, string | Uint8Array, string, readonly [string, string]]>([
    ['blanks in a page', `<p>x${BLANKS}y`, 'text/html', ['x y', '']],
    ['blanks in a title', slides('x', `<dc:title>a${BLANKS}b</dc:title>`), '', ['x', 'a b']],
    ['backticks in code', `<p><code>${'`'.repeat(LONG)}</code>`, 'text/html', [`\` ${'`'.repeat(18)}`, '']],
    ['line breaks in code', `<pre><code>${'\n'.repeat(LONG)}x</code></pre>`, 'text/html', ['```\nx\n```', '']],
  ])('reads ten million %s', (_what, content, contentType, expected) => {
    expect(readUnoptimized(content, contentType)).toEqual(expected)
  })
})
