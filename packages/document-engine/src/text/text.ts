import { type EngineInput, type EngineOutput, NO_METADATA } from '../model/document.js'
import { plainText, trimmedLines } from './plain-text.js'
import { languageOf } from './read-text.js'

/**
 * A text is given as it is, line by line: who reads it has more of its own structure than of escapes. What a claim or an
 * extension calls code or data stands in a fence that names its language.
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
