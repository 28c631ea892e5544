import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { checkClientEvent, type ClientEventLimits, isEventRefusal } from './client-events.js'
import type { RealtimeDialect } from './dialect.js'
import type { EventRefusal } from './event-refusal.js'

function accepted(text: string | Buffer, dialect: RealtimeDialect = 'beta', limits: ClientEventLimits = {}): Buffer {
  const judged = checkClientEvent(Buffer.from(text), dialect, limits)
  if (isEventRefusal(judged)) throw new Error(`${judged.code}: ${judged.message}`)
  return judged.frame
}

function refused(
  text: string | Buffer,
  dialect: RealtimeDialect = 'beta',
  limits: ClientEventLimits = {},
): EventRefusal {
  const judged = checkClientEvent(Buffer.from(text), dialect, limits)
  if (!isEventRefusal(judged)) throw new Error(`accepted: ${judged.type}`)
  return judged
}

const update = (session: string): string => `{"type":"session.update","event_id":"ev_1","session":${session}}`
const create = (response: string): string => `{"type":"response.create","event_id":"ev_1","response":${response}}`
const item = (value: string): string => `{"type":"conversation.item.create","event_id":"ev_1","item":${value}}`

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

describe('A client event whose fields are wrong', () => {
  it.each([
    [update('null'), 'session', 'missing_required_parameter'],
    ['{"type":"session.update","event_id":"ev_1"}', 'session', 'missing_required_parameter'],
    [update('[]'), 'session', 'invalid_type'],
    [update('{"modalities":"text"}'), 'session.modalities', 'invalid_type'],
    [update('{"modalities":["video"]}'), 'session.modalities[0]', 'invalid_value'],
    [update('{"modalities":[]}'), 'session.modalities', 'empty_array'],
    [update('{"instructions":1}'), 'session.instructions', 'invalid_type'],
    [update('{"voice":{}}'), 'session.voice', 'invalid_type'],
    [update('{"input_audio_format":"mp3"}'), 'session.input_audio_format', 'invalid_value'],
    [update('{"output_audio_format":16}'), 'session.output_audio_format', 'invalid_type'],
    [update('{"input_audio_transcription":"whisper-1"}'), 'session.input_audio_transcription', 'invalid_type'],
    [update('{"input_audio_transcription":{"model":1}}'), 'session.input_audio_transcription.model', 'invalid_type'],
    [update('{"turn_detection":"server_vad"}'), 'session.turn_detection', 'invalid_type'],
    [update('{"turn_detection":{"type":"magic"}}'), 'session.turn_detection.type', 'invalid_value'],
    [update('{"turn_detection":{"threshold":"1"}}'), 'session.turn_detection.threshold', 'invalid_type'],
    [
      update('{"turn_detection":{"prefix_padding_ms":1.5}}'),
      'session.turn_detection.prefix_padding_ms',
      'invalid_type',
    ],
    [
      update('{"turn_detection":{"silence_duration_ms":true}}'),
      'session.turn_detection.silence_duration_ms',
      'invalid_type',
    ],
    [update('{"temperature":"0.8"}'), 'session.temperature', 'invalid_type'],
    [update('{"temperature":0.5}'), 'session.temperature', 'decimal_below_min_value'],
    [update('{"temperature":1.3}'), 'session.temperature', 'decimal_above_max_value'],
    [update('{"tools":{}}'), 'session.tools', 'invalid_type'],
    [update('{"tools":[1]}'), 'session.tools[0]', 'invalid_type'],
    [update('{"tool_choice":1}'), 'session.tool_choice', 'invalid_type'],
    [update('{"max_response_output_tokens":"all"}'), 'session.max_response_output_tokens', 'invalid_type'],
    ['{"type":"response.create","event_id":1}', 'event_id', 'invalid_type'],
    [create('[]'), 'response', 'invalid_type'],
    [create('{"modalities":{}}'), 'response.modalities', 'invalid_type'],
    [create('{"temperature":2}'), 'response.temperature', 'decimal_above_max_value'],
    [create('{"input":[1]}'), 'response.input[0]', 'invalid_type'],
    ['{"type":"conversation.item.create"}', 'item', 'missing_required_parameter'],
    [item('{}'), 'item.type', 'missing_required_parameter'],
    [item('{"type":"message","content":"hi"}'), 'item.content', 'invalid_type'],
    [item('{"type":"message","content":[{}]}'), 'item.content[0].type', 'missing_required_parameter'],
    [
      item('{"type":"message","content":[{"type":"input_audio","audio":"%%%%"}]}'),
      'item.content[0].audio',
      'invalid_value',
    ],
    [
      item('{"type":"message","content":[{"type":"input_audio","audio":"\u0141AAA"}]}'),
      'item.content[0].audio',
      'invalid_value',
    ],
    ['{"type":"conversation.item.retrieve"}', 'item_id', 'missing_required_parameter'],
    ['{"type":"conversation.item.delete","item_id":1}', 'item_id', 'invalid_type'],
    [
      '{"type":"conversation.item.truncate","item_id":"i","audio_end_ms":1}',
      'content_index',
      'missing_required_parameter',
    ],
    [
      '{"type":"conversation.item.truncate","item_id":"i","content_index":0}',
      'audio_end_ms',
      'missing_required_parameter',
    ],
    ['{"type":"response.cancel","response_id":[]}', 'response_id', 'invalid_type'],
    ['{"type":"transcription_session.update","session":1}', 'session', 'invalid_type'],
  ])('is refused: %s names %s', (text, param, code) => {
    expect(refused(text)).toMatchObject({ type: 'invalid_request_error', param, code })
  })

  it.each([
    [update('{}'), 'session.type', 'missing_required_parameter'],
    [update('{"type":"other"}'), 'session.type', 'invalid_value'],
    [update('{"type":"realtime","output_modalities":"audio"}'), 'session.output_modalities', 'invalid_type'],
    [update('{"type":"realtime","audio":[]}'), 'session.audio', 'invalid_type'],
    [update('{"type":"realtime","audio":{"input":{"format":"pcm16"}}}'), 'session.audio.input.format', 'invalid_type'],
    [
      update('{"type":"realtime","audio":{"output":{"format":{"type":"mp3"}}}}'),
      'session.audio.output.format.type',
      'invalid_value',
    ],
    [
      update('{"type":"realtime","audio":{"input":{"turn_detection":{"threshold":"1"}}}}'),
      'session.audio.input.turn_detection.threshold',
      'invalid_type',
    ],
    [create('{"audio":{"output":{"voice":1}}}'), 'response.audio.output.voice', 'invalid_type'],
    ['{"type":"transcription_session.update","session":{}}', 'type', 'invalid_value'],
  ])('is refused to a GA client: %s names %s', (text, param, code) => {
    expect(refused(text, 'ga')).toMatchObject({ param, code })
  })

  it('is told back with the event_id of the client', () => {
    expect(refused(update('{"voice":1}')).eventId).toBe('ev_1')
  })
})

describe('The model of a session', () => {
  const model = 'voice-alias'

  it('may be repeated, and is not sent on', () => {
    expect(accepted(update('{"voice":"v","model":"voice-alias"}'), 'beta', { model }).toString()).toBe(
      update('{"voice":"v"}'),
    )
    expect(accepted(update('{ "model" : "voice-alias" , "type":"realtime"}'), 'ga', { model }).toString()).toBe(
      update('{ "type":"realtime"}'),
    )
  })

  it('is not sent on however often it is named', () => {
    const session = '{"model":"other","voice":"v","mod\\u0065l":"voice-alias"}'
    expect(accepted(update(session), 'beta', { model }).toString()).toBe(update('{"voice":"v"}'))
    const endless = `{"model":"other",${'"x":1,'.repeat(2000)}"model":"voice-alias"}`
    expect(refused(update(endless), 'beta', { model }).param).toBe('session.model')
  })

  it.each(['"other"', 'null', '1', '["voice-alias"]'])('cannot become %s', (other) => {
    for (const type of ['session.update', 'transcription_session.update']) {
      const text = `{"type":"${type}","event_id":"ev_1","session":{"model":${other}}}`
      expect(refused(text, 'beta', { model })).toMatchObject({
        code: 'invalid_value',
        param: 'session.model',
        eventId: 'ev_1',
      })
    }
  })
})

describe('Before a client has shown its dialect', () => {
  it.each([
    [update('{"type":"realtime","voice":"x"}'), 'ga'],
    [update('{"type":"realtime","output_modalities":["text"]}'), 'ga'],
    [create('{"output_modalities":["text"]}'), 'ga'],
    [create('{"audio":{"output":{"voice":"x"}}}'), 'ga'],
    [update('{"voice":"x"}'), 'beta'],
    [update('{"turn_detection":null}'), 'beta'],
    [create('{"modalities":["text"]}'), 'beta'],
    ['{"type":"transcription_session.update","session":{}}', 'beta'],
    [update('{"instructions":"x"}'), undefined],
    [create('{"instructions":"x"}'), undefined],
    ['{"type":"response.create"}', undefined],
    ['{"type":"input_audio_buffer.append","audio":"AAAA"}', undefined],
    [item('{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}'), undefined],
  ])('%s shows %s', (text, shows) => {
    const judged = checkClientEvent(Buffer.from(text), undefined)
    if (isEventRefusal(judged)) throw new Error(judged.message)
    expect(judged.shows).toBe(shows)
  })

  it.each([
    [update('{"type":"realtime","audio":1}'), 'session.audio'],
    [update('{"voice":1}'), 'session.voice'],
    [update('{"modalities":["text"],"voice":1}'), 'session.voice'],
  ])('%s is judged by the dialect it shows', (text, param) => {
    expect(checkClientEvent(Buffer.from(text), undefined)).toMatchObject({ param })
  })
})

describe('The check', () => {
  it('answers whatever the bytes, and never throws', () => {
    const nearly = fc
      .tuple(fc.constantFrom(update('{"voice":"v"}'), create('{}'), item('{"type":"message"}')), fc.nat(), fc.nat(255))
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
