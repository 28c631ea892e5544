import type { EngineInput } from '../model/document.js'
import { decodeText } from './charset.js'

/** The text of a document with `\n` alone at the ends of lines and without characters that no file format can hold. */
export function plainText({ bytes, contentType }: EngineInput): string {
  return decodeText(bytes, contentType).replaceAll(/\r\n?/g, '\n').replaceAll('\0', '')
}

/** Without blank lines before and blanks behind; '' or one `\n` at the end. */
export function trimmedLines(text: string): string {
  const end = text.trimEnd().length
  if (end === 0) return ''
  const firstWord = text.length - text.trimStart().length
  return `${text.slice(text.lastIndexOf('\n', firstWord) + 1, end)}\n`
}
