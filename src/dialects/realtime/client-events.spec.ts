import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'

import { accepted, create, createdItem, refused, update } from '../../../test/support/judged-events.js'
import { checkClientEvent, isEventRefusal } from './client-events.js'
import type { RealtimeDialect } from './dialect.js'

describe('A client event that is no event', () => {
  it.each([
    ['not JSON', '{"type":"response.create"', 'invalid_json'],
    ['JSON with a trailing comma', '{"type":"response.create",}', 'invalid_json'],
    ['nothing', '', 'invalid_json'],
    ['an array', '[{"type":"response.create"}]', 'invalid_json'],
    ['a string', '"response.create"', 'invalid_json'],
    ['null', 'null', 'invalid_json'],
    ['two objects', '{"type":"response.create"}{}', 'invalid_json'],
    ['two types', '{"type":"response.create","type":"session.update"}', 'duplicate_key'],
    ['a type twice, one escaped', '{"type":"response.create","t\\u0079pe":"session.update"}', 'duplicate_key'],
    ['a key that reaches a prototype', '{"type":"response.create","__proto__":{}}', 'forbidden_key'],
    ['65 levels', `{"type":"response.create","x":${'['.repeat(64)}${']'.repeat(64)}}`, 'json_too_deep'],
    ['no type', '{"event_id":"e"}', 'invalid_event'],
    ['a numeric type', '{"type":1}', 'invalid_type'],
    ['an unknown type', '{"type":"response.crate"}', 'invalid_value'],
    ['the type of a server event', '{"type":"response.done"}', 'invalid_value'],
    ['a type from the prototype', '{"type":"constructor"}', 'invalid_value'],
    ['an endless type', JSON.stringify({ type: 'x'.repeat(100_000) }), 'invalid_value'],
  ])('is refused: %s', (_, text, code) => {
    const { message, ...rest } = refused(text)
    expect(rest).toMatchObject({ type: 'invalid_request_error', code })
    expect(message.length).toBeLessThan(1024)
  })

  it('is refused when it is not UTF-8', () => {
    const bytes = Buffer.concat([
      Buffer.from('{"type":"response.create","x":"'),
      Buffer.from([0xff]),
      Buffer.from('"}'),
    ])
    expect(refused(bytes).code).toBe('invalid_json')
  })

  it('64 levels are still an event', () => {
    const text = `{"type":"response.create","x":${'['.repeat(63)}${']'.repeat(63)}}`
    expect(accepted(text).toString()).toBe(text)
  })

  it.each([
    ['objects', '{},'],
    ['arrays', '[],'],
    ['numbers', '0,'],
    ['texts', '"",'],
  ])('is refused before it is parsed when a parser would make millions of %s of it', (_, value) => {
    const values = value.repeat(20_000_000 / value.length)
    const frame = Buffer.from(`{"event_id":"e7","type":"response.create","response":{"metadata":{"a":[${values}0]}}}`)
    const before = process.memoryUsage().heapUsed
    expect(refused(frame)).toMatchObject({ code: 'invalid_event', param: null, eventId: 'e7' })
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(20_000_000)
  })

  it('65,536 values are still an event, and commas in texts are none', () => {
    const values = `${'0,'.repeat(65_530)}"${','.repeat(100_000)}"`
    expect(accepted(`{"type":"response.create","x":[${values}]}`).length).toBeGreaterThan(200_000)
    expect(refused(`{"type":"response.create","x":[${'0,'.repeat(10)}${values}]}`).code).toBe('invalid_event')
  })

  it('is refused with its own event_id wherever one can be read', () => {
    expect(refused('{"event_id":"e7","type":"nothing"}').eventId).toBe('e7')
    expect(refused('{"event_id":"e7"}').eventId).toBe('e7')
    expect(refused('{"event_id":"e7","type":"response.create","type":"response.create"}').eventId).toBe('e7')
    expect(refused('{"event_id":"e7","x":}').eventId).toBeNull()
    expect(refused('{"event_id":7,"type":"response.create"}').eventId).toBeNull()
    expect(refused(JSON.stringify({ event_id: 'e'.repeat(513), type: 'response.create' })).eventId).toBeNull()
  })
})

describe('The check', () => {
  it('answers whatever the bytes, and never throws', () => {
    const nearly = fc
      .tuple(
        fc.constantFrom(update('{"voice":"v"}'), create('{}'), createdItem('{"type":"message"}')),
        fc.nat(),
        fc.nat(255),
      )
      .map(([text, place, byte]) => {
        const damaged = Buffer.from(text)
        damaged[place % damaged.length] = byte
        return damaged
      })
    const noise = fc.uint8Array({ maxLength: 80 }).map((bytes) => Buffer.from(bytes))
    const values = fc.json().map((text) => Buffer.from(`{"type":"session.update","session":${text}}`))
    fc.assert(
      fc.property(
        fc.oneof(nearly, noise, values),
        fc.constantFrom<RealtimeDialect | undefined>('ga', 'beta', undefined),
        (frame, dialect) => {
          const judged = checkClientEvent(frame, dialect)
          if (!isEventRefusal(judged)) expect(judged.frame).toBe(frame)
        },
      ),
      { numRuns: 3000 },
    )
  })
})
