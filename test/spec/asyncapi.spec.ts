import { readFileSync } from 'node:fs'
import { describe, expect, it } from '@jest/globals'
import {
  alternatives,
  ASYNC_API_TEXT,
  asObject,
  asyncApi,
  messages,
  payloadOf,
  resolved,
  type Schema,
  schemas,
  typesOf,
} from '../support/async-api.js'
import { eventFieldsOf } from '../support/event-fields.js'
import { lineAfter, listOf, sectionOf, tableOf } from '../support/specification.js'

const memberAt = (schema: Schema, path: string): Schema | undefined =>
  path
    .split('.')
    .reduce<Schema | undefined>((at, name) => (at === undefined ? at : asObject(at).properties?.[name]), schema)

const OPEN_API_TEXT = readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8')
const CLIENT_TABLE = tableOf('Client events', 'type')
const SERVER_TABLE = tableOf('Server events', 'type')
const OTHERS = ['otherClientEvent', 'otherServerEvent']

const namesOf = (operation: string): string[] =>
  (asyncApi.operations[operation]?.messages ?? []).map(({ $ref }) => $ref.split('/').at(-1) ?? '')

describe('asyncapi.yaml', () => {
  it('is of version 3.0 and describes the route of the specification', () => {
    expect(asyncApi.asyncapi).toBe('3.0.0')
    expect(sectionOf('GET /v1/realtime')).toContain(`{realtime_url}${asyncApi.channels.realtime.address} `)
  })

  it('has no reference that leads nowhere, and no message or schema without one', () => {
    const references = [...ASYNC_API_TEXT.matchAll(/\$ref: ["']?(#[^\s"']+)/g)].map(([, to]) => to ?? '')
    expect(references.length).toBeGreaterThan(20)
    for (const reference of references) expect(() => resolved(reference)).not.toThrow()
    const parts = [
      ...Object.keys(messages).map((name) => `#/components/messages/${name}`),
      ...Object.keys(schemas).map((name) => `#/components/schemas/${name}`),
      ...Object.keys(asyncApi.channels.realtime.messages).map((name) => `#/channels/realtime/messages/${name}`),
    ]
    expect(parts.filter((part) => !references.includes(part))).toEqual([])
  })

  it('receives exactly the client events of the specification, and others', () => {
    expect(asyncApi.operations['receiveClientEvent']?.action).toBe('receive')
    expect(namesOf('receiveClientEvent')).toEqual([...CLIENT_TABLE.map((row) => row['type']), 'otherClientEvent'])
  })

  it('sends exactly the server events of the specification, and others', () => {
    expect(asyncApi.operations['sendServerEvent']?.action).toBe('send')
    expect(namesOf('sendServerEvent')).toEqual([...SERVER_TABLE.map((row) => row['type']), 'otherServerEvent'])
  })

  it.each(Object.keys(messages).filter((name) => !OTHERS.includes(name)))('names %s in its payload', (name) => {
    const type = payloadOf(name).properties?.['type']
    expect(type?.const ?? type?.enum?.join()).toBe(name)
    expect(payloadOf(name).required).toContain('type')
  })

  it('has the client payloads of openapi.json, which is made from the DTOs', () => {
    const { components } = JSON.parse(OPEN_API_TEXT) as { components: { schemas: Record<string, Schema> } }
    for (const name of ['SessionUpdate', 'InputAudioAppend', 'ResponseCreate']) {
      expect([name, schemas[name]]).toEqual([name, components.schemas[`${name}Dto`]])
    }
  })
})

describe('the fields of the specification', () => {
  const rows = [...CLIENT_TABLE, ...SERVER_TABLE].flatMap((row) =>
    eventFieldsOf(row['Fields'] ?? '').map((field) => [row['type'] ?? '', field.path, field] as const),
  )

  it('are read from its tables', () => {
    expect(rows.length).toBeGreaterThan(30)
    expect(rows).toContainEqual([
      'session.update',
      'session.turn_detection.type',
      { path: 'session.turn_detection.type', type: 'string', values: ['server_vad'] },
    ])
    expect(rows.map(([, path]) => path)).toContain('response.usage.input_token_details.audio_tokens')
  })

  it.each(rows)('of %s have %s with its type and values', (event, path, { type, values }) => {
    const schema = memberAt(payloadOf(event), path)
    expect(schema).toBeDefined()
    const usual = path.endsWith('_tokens') ? 'integer' : 'string'
    expect(typesOf(schema ?? {})).toContain(type ?? usual)
    const known = alternatives(schema ?? {}).flatMap((one) => [
      ...(one.enum ?? []),
      ...(one.items?.enum ?? []),
      ...Object.keys(one.properties ?? {}),
      ...('default' in one ? [one.default] : []),
    ])
    const named = values.filter((value) => !value.startsWith('and '))
    expect(known).toEqual(expect.arrayContaining(named))
  })

  it.each([...CLIENT_TABLE, ...SERVER_TABLE].map((row) => [row['type'] ?? '', row['Fields'] ?? '']))(
    'of %s that are Base64 are marked so: %s',
    (event, cell) => {
      const [name = '', words] = cell.split(': ')
      if (words === undefined) return
      expect(payloadOf(event).properties?.[name]?.format === 'byte').toBe(words.startsWith('Base64'))
    },
  )

  it('have the audio formats of the specification', () => {
    const line = lineAfter('Client events', 'Audio format values:')
    const formats = listOf(line.replaceAll(/ \([^)]*\)/g, ''))
    expect(formats).toEqual(['pcm16', 'g711_ulaw', 'g711_alaw'])
    for (const name of ['input_audio_format', 'output_audio_format']) {
      expect(memberAt(payloadOf('session.update'), `session.${name}`)?.enum).toEqual(formats)
    }
  })
})
