import { readFileSync } from 'node:fs'
import { parse } from 'yaml'

export const ASYNC_API_TEXT = readFileSync(new URL('../../asyncapi.yaml', import.meta.url), 'utf8')

export interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly const?: string
  readonly format?: string
  readonly enum?: readonly string[]
  readonly required?: readonly string[]
  readonly minimum?: number
  readonly maximum?: number
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly oneOf?: readonly Schema[]
}

export type Event = Readonly<Record<string, unknown>>

interface Reference {
  readonly $ref: string
}

interface Message {
  readonly payload: Reference
  readonly examples?: readonly { readonly payload: Event }[]
}

interface AsyncApi {
  readonly asyncapi: string
  readonly info: { readonly description: string }
  readonly channels: { readonly realtime: { readonly address: string; readonly messages: Record<string, Reference> } }
  readonly operations: Readonly<Record<string, { readonly action: string; readonly messages: readonly Reference[] }>>
  readonly components: {
    readonly messages: Readonly<Record<string, Message>>
    readonly schemas: Readonly<Record<string, Schema>>
  }
}

export const asyncApi: AsyncApi = parse(ASYNC_API_TEXT) as AsyncApi
export const { messages, schemas } = asyncApi.components

/** What a reference leads to, through any number of them. Throws when it leads nowhere. */
export function resolved(reference: string): unknown {
  const found = reference
    .replace('#/', '')
    .split('/')
    .reduce<unknown>((value, name) => (value as Record<string, unknown> | undefined)?.[name], asyncApi)
  if (found === undefined) throw new Error(`${reference} leads nowhere`)
  const next = (found as Partial<Reference>).$ref
  return next === undefined ? found : resolved(next)
}

const direct = (schema: Schema): Schema => (schema.$ref === undefined ? schema : (resolved(schema.$ref) as Schema))

export const payloadOf = (name: string): Schema => direct(messages[name]?.payload ?? { $ref: `#/no message ${name}` })

/** The object among alternatives, where there are any: only it has members. */
export const asObject = (schema: Schema): Schema => schema.oneOf?.find((one) => one.type === 'object') ?? direct(schema)

export const alternatives = (schema: Schema): readonly Schema[] => (schema.oneOf ?? [schema]).map(direct)
export const typesOf = (schema: Schema): string[] => alternatives(schema).flatMap(({ type = [] }) => type)

/** A field as the specification's event tables write it: `turn_detection.type` → string, (server_vad). */
export interface EventField {
  readonly path: string
  /** Absent where the table names no type. */
  readonly type: string | undefined
  readonly values: readonly string[]
}

const TYPES = ['string', 'integer', 'number', 'array', 'object']

/** Cuts at commas and semicolons that stand in no brackets. */
function pieces(text: string): string[] {
  const found: string[] = []
  let depth = 0
  let start = 0
  for (let at = 0; at <= text.length; at++) {
    const sign = text[at] ?? ','
    if ('{('.includes(sign)) depth++
    if ('})'.includes(sign)) depth--
    if (depth > 0 || !',;'.includes(sign)) continue
    found.push(text.slice(start, at).trim())
    start = at + 1
  }
  return found.filter((piece) => piece !== '')
}

/** Reads a cell such as `event_id string; session {voice string, tools array}` or `delta: Base64 audio chunk`. */
export function eventFieldsOf(cell: string, prefix = ''): EventField[] {
  return pieces(cell).flatMap((piece) => {
    const [, name = '', rest = ''] = /^([\w.]+):?\s*(.*)$/s.exec(piece) ?? []
    const path = prefix + name
    const members = /^\{(.*)\}$/s.exec(rest)?.[1]
    if (members !== undefined) return [{ path, type: 'object', values: [] }, ...eventFieldsOf(members, `${path}.`)]
    const [word = ''] = rest.split(' ')
    const values = /\(([^)]*)\)/.exec(rest)?.[1]?.split(',') ?? []
    return [{ path, type: TYPES.includes(word) ? word : undefined, values: values.map((value) => value.trim()) }]
  })
}

const TEXT = readFileSync(new URL('../../docs/spec.md', import.meta.url), 'utf8')

/** One row of a table: column heading → cell. */
export type Row = Readonly<Record<string, string>>

const cellsOf = (line: string): string[] =>
  line
    .slice(1, -1)
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim())

/** The text under a heading, up to the next heading of any level. Throws when there is none. */
export function sectionOf(heading: string): string {
  const lines = TEXT.split('\n')
  const start = lines.findIndex((line) => /^#+ /.test(line) && line.replace(/^#+ /, '').startsWith(heading))
  if (start === -1) throw new Error(`the specification has no heading "${heading}"`)
  const length = lines.slice(start + 1).findIndex((line) => line.startsWith('#'))
  return lines.slice(start + 1, length === -1 ? undefined : start + 1 + length).join('\n')
}

/** The rows of the section's table whose first column has this heading. Throws when there is none. */
export function tableOf(heading: string, firstColumn: string): readonly Row[] {
  const lines = sectionOf(heading).split('\n')
  const start = lines.findIndex((line, at) => cellsOf(line)[0] === firstColumn && /^\|[-|]+$/.test(lines[at + 1] ?? ''))
  if (start === -1) throw new Error(`"${heading}" has no table of "${firstColumn}"`)
  const columns = cellsOf(lines[start] ?? '')
  const length = lines.slice(start).findIndex((line) => !line.startsWith('|'))
  const body = lines.slice(start + 2, length === -1 ? undefined : start + length)
  return body.map((line) => Object.fromEntries(cellsOf(line).map((cell, index) => [columns[index] ?? '', cell])))
}

/** What follows the words on their line. Throws when no line of the section begins with them. */
export function lineAfter(heading: string, words: string): string {
  const line = sectionOf(heading)
    .split('\n')
    .find((candidate) => candidate.startsWith(words))
  if (line === undefined) throw new Error(`"${heading}" has no line that begins with "${words}"`)
  return line.slice(words.length).trim().replace(/\.$/, '')
}

export const listOf = (text: string): string[] => text.split(',').map((item) => item.trim())
