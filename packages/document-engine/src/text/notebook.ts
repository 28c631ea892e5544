import { readTree } from '../html/html-parser.js'
import { fenceFor } from '../markdown/escape-markdown.js'
import { htmlToMarkdown } from '../markdown/html-to-markdown.js'
import {
  EngineFault,
  type EngineInput,
  type EngineLimits,
  type EngineOutput,
  type EngineWarning,
  NO_METADATA,
} from '../model/document.js'
import { plainText, titleOfMarkdown } from './read-text.js'

type Json = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)
const objectIn = (value: unknown): Json => (isObject(value) ? value : {})
const listIn = (value: unknown): readonly unknown[] => (Array.isArray(value) ? (value as readonly unknown[]) : [])

/** Texts of notebooks are lists of lines, or one string. */
function textIn(value: unknown): string {
  if (typeof value === 'string') return value
  return listIn(value)
    .filter((line) => typeof line === 'string')
    .join('')
}

/**
 * A Jupyter notebook (nbformat 3 and 4): text as it is, code in fences with the language of the kernel, and what the code put
 * out as text or as a table.
 *
 * @throws EngineFault `broken`
 */
export function readNotebook(input: EngineInput, _limits: EngineLimits): EngineOutput {
  const notebook = parsed(plainText(input))
  const metadata = objectIn(notebook.metadata)
  const named = objectIn(metadata.language_info).name ?? objectIn(metadata.kernelspec).language
  const reading: Reading = { language: languageName(named), droppedPictures: 0, blocks: [] }
  const sheets = listIn(notebook.worksheets).flatMap((sheet) => listIn(objectIn(sheet).cells))
  for (const cell of [...listIn(notebook.cells), ...sheets]) readCell(objectIn(cell), reading)
  const { blocks, droppedPictures } = reading
  const markdown = blocks.length === 0 ? '' : `${blocks.join('\n\n')}\n`
  const warnings: EngineWarning[] =
    droppedPictures === 0
      ? []
      : [{ code: 'pictures_dropped', message: `Pictures that the code drew are left out: ${droppedPictures}.` }]
  const title = typeof metadata.title === 'string' ? metadata.title : titleOfMarkdown(markdown)
  return { kind: 'notebook', metadata: { ...NO_METADATA, title, warnings }, html: '', markdown, pages: 1 }
}

function parsed(text: string): Json {
  try {
    return objectIn(JSON.parse(text))
  } catch (error) {
    if (error instanceof RangeError) throw error
    throw new EngineFault('broken', 'The file is damaged: it is no complete notebook.', { cause: error })
  }
}

interface Reading {
  readonly language: string
  readonly blocks: string[]
  droppedPictures: number
}

function languageName(name: unknown): string {
  return typeof name === 'string' && /^[\w+#-]{1,30}$/.test(name) ? name.toLowerCase() : 'python'
}

function readCell(cell: Json, reading: Reading): void {
  const source = textIn(cell.source ?? cell.input)
  if (cell.cell_type === 'code') {
    if (source.trim() !== '') reading.blocks.push(fenced(source, magicLanguage(source) ?? reading.language))
    for (const output of listIn(cell.outputs)) readOutput(objectIn(output), reading)
  } else if (cell.cell_type === 'heading') {
    const level = Math.min(6, Math.max(1, Number(cell.level) || 1))
    reading.blocks.push(`${'#'.repeat(level)} ${source.replaceAll(/\s+/g, ' ').trim()}`)
  } else if (source.trim() !== '') reading.blocks.push(source.trimEnd())
}

/** Language of a cell that is run by another program: `%%bash`. */
function magicLanguage(source: string): string | undefined {
  return /^%%(bash|sh|html|javascript|js|latex|perl|ruby|sql|svg|R)\b/.exec(source)?.[1]?.toLowerCase()
}

const PICTURE_TYPES = ['image/png', 'image/jpeg', 'image/svg+xml', 'image/gif', 'png', 'jpeg', 'svg']

function readOutput(output: Json, reading: Reading): void {
  if (output.output_type === 'stream') {
    addText(textIn(output.text), reading)
    return
  }
  if (output.output_type === 'error' || output.output_type === 'pyerr') {
    addText([output.ename, output.evalue].filter((part) => typeof part === 'string').join(': '), reading)
    return
  }
  // Before version 4 the forms stood beside the type.
  const forms = isObject(output.data) ? output.data : output
  const table = textIn(forms['text/html'] ?? forms.html)
  const markdown = textIn(forms['text/markdown'])
  const plain = textIn(forms['text/plain'] ?? forms.text)
  if (/<table[\s>]/i.test(table)) reading.blocks.push(htmlToMarkdown(readTree(table).body, { baseUrl: '' }).trimEnd())
  else if (markdown.trim() !== '') reading.blocks.push(markdown.trimEnd())
  // Beside a picture the text only names the object that drew it.
  else if (PICTURE_TYPES.some((type) => forms[type] !== undefined)) reading.droppedPictures += 1
  else addText(plain, reading)
}

/** Colours and movements of terminals. */
// eslint-disable-next-line no-control-regex
const TERMINAL_CODE = /\u001b\[[\d;?]{0,40}[A-Za-z]/g

function addText(text: string, reading: Reading): void {
  const lines = text.replaceAll(TERMINAL_CODE, '').replaceAll(/\r\n?/g, '\n')
  if (lines.trim() !== '') reading.blocks.push(fenced(lines, ''))
}

function fenced(text: string, language: string): string {
  const fence = fenceFor(text, 3)
  return `${fence}${language}\n${text.replace(/^\n+/, '').trimEnd()}\n${fence}`
}
