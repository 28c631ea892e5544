import { isObject } from '../server/json-value.js'
import { reject } from '../server/openai-rejection.js'

/** Refuses in the speech endpoint's way: the message is a Python list printed as text, and it echoes the input. */
export function invalid(type: string, field: string, message: string, input: unknown, context?: string): never {
  const ctx = context === undefined ? '' : `, 'ctx': ${context}`
  const entry = `'type': ${quoted(type)}, 'loc': ('body', ${quoted(field)}), 'msg': ${quoted(message)}`
  reject(`[{${entry}, 'input': ${python(input)}${ctx}}]`)
}

/** Choices as Python prints them: `'a', 'b' or 'c'`. */
export function pythonList(values: readonly string[]): string {
  const texts = values.map((value) => `'${value}'`)
  return texts.length < 2 ? texts.join('') : `${texts.slice(0, -1).join(', ')} or ${texts.at(-1) ?? ''}`
}

/** A string as Python prints it: in single quotes unless it contains some. */
export function quoted(text: string): string {
  const escaped = text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('\r', '\\r').replaceAll('\t', '\\t')
  if (!escaped.includes("'")) return `'${escaped}'`
  return escaped.includes('"') ? `'${escaped.replaceAll("'", "\\'")}'` : `"${escaped}"`
}

function python(value: unknown): string {
  if (value === null || value === undefined) return 'None'
  if (typeof value === 'string') return quoted(value)
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (Array.isArray(value)) return `[${value.map(python).join(', ')}]`
  if (!isObject(value)) return JSON.stringify(value)
  const pairs = Object.entries(value).map(([key, entry]) => `${quoted(key)}: ${python(entry)}`)
  return `{${pairs.join(', ')}}`
}
