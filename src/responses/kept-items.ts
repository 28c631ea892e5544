import { JsonBody } from '../core/json-body.js'
import { elementSpans } from '../core/json-spans.js'
import { MadeIds } from '../dialects/made-ids.js'
import { isRecord } from '../core/validation-rules.js'
import { isId } from '../dialects/kept-answers.js'
import type { KeptItem } from './kept-responses.js'

/** What ids of items begin with, by their types. */
const PREFIXES: Readonly<Record<string, string>> = {
  message: 'msg',
  reasoning: 'rs',
  function_call: 'fc',
  function_call_output: 'fc',
  custom_tool_call: 'ctc',
  custom_tool_call_output: 'ctc',
}

/** Gives ids to items that have none. */
export class ItemIds {
  private readonly made = new MadeIds()
  private count = 0

  next(type: string): string {
    return this.made.id(PREFIXES[type] ?? 'item', ++this.count)
  }
}

type Item = Readonly<Record<string, unknown>>

const itemIn = (text: string): Item => {
  const value: unknown = JSON.parse(text)
  return isRecord(value) ? value : {}
}

/** Clients leave it out where the role says it. */
const typeOf = ({ type }: Item): string => (typeof type === 'string' ? type : 'message')

/** The texts of the elements of a list, as they are spelled. */
export function elementTexts(list: string): readonly string[] {
  const bytes = Buffer.from(list)
  return (elementSpans(bytes, Infinity) ?? []).map(({ start, end }) => bytes.toString('utf8', start, end))
}

/** The items of a request, given as the JSON of its `input`: a text is a message of the user. */
export function inputTexts(input: string | undefined): readonly string[] {
  if (input === undefined || input === 'null') return []
  return input.startsWith('"') ? [`{"type":"message","role":"user","content":${input}}`] : elementTexts(input)
}

/** An item as it is kept. */
export function keptItem(text: string, isMade: boolean, ids: ItemIds): KeptItem {
  const item = itemIn(text)
  const { id } = item
  return { id: isId(id) ? id : ids.next(typeOf(item)), text, isMade }
}

const edited = (text: string, edits: Readonly<Record<string, string | undefined>>): string =>
  JsonBody.written(text, {}).edited(edits).toString()

/**
 * An item as an upstream that keeps responses itself takes it; undefined for one that would mean nothing there. It would look for what a
 * translation has made by its id, and could not read its sealed thoughts.
 */
export function nativeText({ text, isMade }: KeptItem): string | undefined {
  if (!isMade) return text
  return typeOf(itemIn(text)) === 'reasoning' ? undefined : edited(text, { id: undefined })
}

/** An item as a list of the input shows it: with an id and a status, its text in parts. */
export function listedText({ id, text }: KeptItem): string {
  const item = itemIn(text)
  const type = typeOf(item)
  const missing = (name: string, value: string): object => (item[name] == null ? { [name]: JSON.stringify(value) } : {})
  const status = type === 'reasoning' ? {} : missing('status', 'completed')
  return edited(text, { ...missing('id', id), ...missing('type', type), ...status, ...contentEdit(item) })
}

function contentEdit({ content, role }: Item): Readonly<Record<string, string>> {
  if (typeof content !== 'string') return {}
  const part =
    role === 'assistant'
      ? { type: 'output_text', text: content, annotations: [] }
      : { type: 'input_text', text: content }
  return { content: JSON.stringify([part]) }
}
