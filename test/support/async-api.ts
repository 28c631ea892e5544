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
