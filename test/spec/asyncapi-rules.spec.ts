import { describe, expect, it } from '@jest/globals'
import { clientEventTypes, rulesOf } from '../../src/dialects/realtime/client-event-rules.js'
import { checkClientEvent, isEventRefusal } from '../../src/dialects/realtime/client-events.js'
import type { EventRefusal } from '../../src/dialects/realtime/event-refusal.js'
import {
  alternatives,
  asObject,
  type Event,
  messages,
  payloadOf,
  type Schema,
  schemas,
  typesOf,
} from '../support/async-api.js'
import { tableOf } from '../support/specification.js'

const judge = (event: unknown): EventRefusal | undefined => {
  const judged = checkClientEvent(Buffer.from(JSON.stringify(event)), 'beta')
  return isEventRefusal(judged) ? judged : undefined
}

/** A copy of the event with one member, named by its path, replaced or (`undefined`) removed. */
function changed(event: Event, path: string, value: unknown): Event {
  const copy = structuredClone(event)
  const names = path.split('.')
  const last = names.pop() ?? ''
  const owner = names.reduce<Record<string, unknown>>((at, name) => at[name] as Record<string, unknown>, { ...copy })
  if (names.length === 0) return { ...copy, [last]: value }
  owner[last] = value
  return copy
}

/** Every member of a schema below its top, with its path; items of lists are left out. */
function membersOf(schema: Schema, prefix = ''): (readonly [path: string, schema: Schema])[] {
  return Object.entries(asObject(schema).properties ?? {}).flatMap(([name, member]) => [
    [prefix + name, member] as const,
    ...membersOf(member, `${prefix}${name}.`),
  ])
}

/** Values that the schema does not allow. */
function wrongFor(schema: Schema): unknown[] {
  const types = typesOf(schema)
  const wrong: unknown[] = [true]
  if (!types.includes('string')) wrong.push('wrong')
  else if (alternatives(schema).some((one) => one.enum !== undefined)) wrong.push('no such word')
  if (schema.format === 'byte') wrong.push('no base64!')
  if (!types.includes('number') && !types.includes('integer')) wrong.push(5)
  if (types.includes('integer')) wrong.push(1.5)
  if (schema.minimum !== undefined) wrong.push(schema.minimum - 0.1)
  if (schema.maximum !== undefined) wrong.push(schema.maximum + 0.1)
  if (!types.includes('array')) wrong.push([])
  return wrong
}

const CHECKED = tableOf('Client events', 'type').map((row) => row['type'] ?? '')
const exampleOf = (name: string): Event => messages[name]?.examples?.[0]?.payload ?? {}

describe('the rules for the events of clients', () => {
  it.each(Object.entries(messages).flatMap(([name, { examples = [] }]) => examples.map((one) => [name, one.payload])))(
    'accept the example of %s: %j',
    (_name, payload) => {
      expect(judge(payload)).toBeUndefined()
    },
  )

  it.each(CHECKED.flatMap((name) => membersOf(payloadOf(name)).map(([path, schema]) => [name, path, schema] as const)))(
    'judge in %s the member %s as its schema does',
    (name, path, schema) => {
      const good = exampleOf(name)
      expect(path.split('.').reduce<unknown>((at, one) => (at as Event)[one], good)).toBeDefined()
      if (path === 'type') return
      for (const value of wrongFor(schema))
        expect([value, judge(changed(good, path, value))?.param]).toEqual([value, path])
      for (const value of schema.enum ?? []) expect(judge(changed(good, path, value))).toBeUndefined()
      for (const value of [schema.minimum, schema.maximum]) {
        if (value !== undefined) expect(judge(changed(good, path, value))).toBeUndefined()
      }
    },
  )

  it.each(CHECKED)('of %s demand what its schema demands', (name) => {
    const { required = [], properties = {} } = payloadOf(name)
    for (const member of Object.keys(properties)) {
      const refused = judge(changed(exampleOf(name), member, undefined)) !== undefined
      expect([member, refused]).toEqual([member, required.includes(member)])
    }
  })

  it.each(CHECKED)('of %s look at no member that its schema does not have', (name) => {
    const asked = new Set<string>()
    const watch = (value: unknown, path: string): unknown => {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
      return new Proxy(value, {
        get: (target, member) => {
          const below = `${path}.${String(member)}`
          asked.add(below)
          return watch(Reflect.get(target, member), below)
        },
      })
    }
    const example = exampleOf(name)
    const rules = rulesOf('beta', name) ?? {}
    for (const member of Object.keys(rules)) {
      asked.add(member)
      expect(rules[member]?.(watch(example[member], member), member)).toBeUndefined()
    }
    const known = membersOf(payloadOf(name)).map(([path]) => path)
    expect([...asked].filter((path) => !known.includes(path))).toEqual([])
    expect(asked.size).toBeGreaterThanOrEqual(2)
  })

  it('know the other types that the document lists, in one dialect or the other', () => {
    const both = new Set([...clientEventTypes('beta'), ...clientEventTypes('ga')])
    const listed = schemas['OtherClientEvent']?.properties?.['type']?.enum ?? []
    expect([...CHECKED, ...listed].sort()).toEqual([...both].sort())
    const examples = messages['otherClientEvent']?.examples ?? []
    expect(examples.map(({ payload }) => payload['type'])).toEqual(listed)
  })
})
