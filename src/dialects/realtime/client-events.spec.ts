import { isUtf8 } from 'node:buffer'
import { describe, expect, it, jest } from '@jest/globals'
import fc from 'fast-check'
import { codePoint } from '../../../test/support/arbitraries.js'
import { accepted, create, createdItem, refused, update } from '../../../test/support/realtime-server-events.js'
import { checkClientEvent, isEventRefusal } from './client-events.js'
import type { RealtimeDialect } from './dialect.js'
import { pathToBeta, pathToGa, withMappedParam } from './session-rules.js'
import { TranscriptionModelNames } from './transcription-session.js'

const STRICT = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

const APPEND = 'input_audio_buffer.append'

const LAYOUTS: readonly (readonly [string, (audio: string) => string])[] = [
  ['type first', (audio) => `{"type":"${APPEND}","audio":"${audio}"}`],
  ['event_id first', (audio) => `{"event_id":"ev_1","type":"${APPEND}","audio":"${audio}"}`],
  ['event_id last', (audio) => `{"type":"${APPEND}","audio":"${audio}","event_id":"ev_1"}`],
  ['audio first', (audio) => `{"audio":"${audio}","type":"${APPEND}"}`],
  ['spaces', (audio) => ` { "type": "${APPEND}",\n  "audio" : "${audio}" }\r\n`],
]

function refusalOf(
  text: string,
  maximumAudioBytes?: number,
): { readonly code?: string; readonly param?: string | null } {
  const limits = maximumAudioBytes === undefined ? {} : { maximumAudioBytes }
  const checked = checkClientEvent(Buffer.from(text), 'beta', limits)
  return isEventRefusal(checked) ? checked : {}
}

describe.each(LAYOUTS)('An audio append with %s', (_, layout) => {
  it('goes on as the very same frame, and no parser has seen it', () => {
    const parse = jest.spyOn(JSON, 'parse')
    try {
      const frame = Buffer.from(layout(Buffer.alloc(4800, 7).toString('base64')))
      const checked = checkClientEvent(frame, 'beta')
      expect(isEventRefusal(checked)).toBe(false)
      expect('frame' in checked && checked.frame).toBe(frame)
      expect(parse).not.toHaveBeenCalled()
    } finally {
      parse.mockRestore()
    }
  })

  it.each(['AAA', 'AA-_', 'AA A', '====', '!', '\\n', '\\u00e9', '\u0141AAA', 'AAAA=', 'AA\\/'])(
    'is refused when the audio is %j',
    (audio) => {
      expect(refusalOf(layout(audio))).toMatchObject({ code: 'invalid_value', param: 'audio' })
    },
  )

  it.each(['', 'AA==', 'AA\\/A', '\\u0041AAA'])('is accepted when the audio is %j', (audio) => {
    expect(refusalOf(layout(audio))).toEqual({})
  })

  it('may carry as much audio as the limit and not a byte more', () => {
    const audio = (bytes: number): string => Buffer.alloc(bytes).toString('base64')
    for (const limit of [9, 10, 11]) {
      expect(refusalOf(layout(audio(limit)), limit)).toEqual({})
      expect(refusalOf(layout(audio(limit + 1)), limit)).toMatchObject({
        code: 'string_above_max_length',
        param: 'audio',
      })
    }
  })
})

describe('An audio append', () => {
  it('may carry 15 MiB', () => {
    const audio = Buffer.alloc(15 * 1024 * 1024).toString('base64')
    expect(refusalOf(`{"type":"${APPEND}","audio":"${audio}"}`)).toEqual({})
    expect(refusalOf(`{"type":"${APPEND}","audio":"${audio}AAAA"}`).code).toBe('string_above_max_length')
    expect(refusalOf(`{"type":"${APPEND}","audio":"\\u0041AAA${audio}"}`).code).toBe('string_above_max_length')
  })

  it.each([
    [`{"type":"${APPEND}"}`, 'missing_required_parameter'],
    [`{"type":"${APPEND}","audio":null}`, 'missing_required_parameter'],
    [`{"type":"${APPEND}","audio":1}`, 'invalid_type'],
    [`{"type":"${APPEND}","audio":["AAAA"]}`, 'invalid_type'],
    [`{"type":"${APPEND}","audio":"AAAA","audio":"AAAA"}`, 'duplicate_key'],
    [`{"type":"session.update","audio":"AAAA","type":"${APPEND}"}`, 'duplicate_key'],
    [`{"type":"${APPEND}","audio":"AAAA","event_id":7}`, 'invalid_type'],
    [`{"type":"${APPEND}","audio":"AAAA","event_id":"${'e'.repeat(513)}"}`, 'string_above_max_length'],
    [`{"type":"${APPEND}","audio":"AAAA","event_id":"\u0001"}`, 'invalid_json'],
    [`{"type":"${APPEND}","audio":"AAAA","event_id":"\\x"}`, 'invalid_json'],
    [`{"type":"${APPEND}","audio":"AAAA"]`, 'invalid_json'],
    [`{"type":"${APPEND}","audio":"AAAA"}}`, 'invalid_json'],
    [`{"type":"${APPEND}""audio":"AAAA"}`, 'invalid_json'],
    [`{"type":"${APPEND}","audio":"AAAA`, 'invalid_json'],
  ])('is refused: %s', (text, code) => {
    expect(refusalOf(text)).toMatchObject({ code })
  })

  it('keeps unknown fields and an event_id in any script', () => {
    expect(refusalOf(`{"type":"${APPEND}","audio":"AAAA","x":{"a":[1]}}`)).toEqual({})
    expect(refusalOf(`{"type":"${APPEND}","audio":"AAAA","event_id":"\u00e9\\n"}`)).toEqual({})
    expect(refusalOf(`{"typ\\u0065":"${APPEND}","\\u0061udio":"AAAA"}`)).toEqual({})
  })

  it('is judged as a parser and a regular expression would judge it', () => {
    const space = fc.constantFrom('', ' ', '\n')
    const payload = fc.oneof(
      fc.uint8Array({ maxLength: 30 }).map((bytes) => Buffer.from(bytes).toString('base64')),
      fc.string({ unit: fc.constantFrom('A', '/', '=', '-', '\\/', '\\u0041', '"', '\\', '\u0141'), maxLength: 8 }),
    )
    const members = fc
      .tuple(payload, fc.constantFrom('"ev_1"', '"\u00e9"', '7', 'null'), space)
      .chain(([audio, id, gap]) =>
        fc.shuffledSubarray([`"type"${gap}:"${APPEND}"`, `"audio":${gap}"${audio}"`, `"event_id":${id}`, '"x":1.0'], {
          minLength: 2,
        }),
      )
    const damage = fc.option(fc.tuple(fc.nat(), fc.integer({ min: 1, max: 126 })), { freq: 3, nil: undefined })
    fc.assert(
      fc.property(members, damage, (list, change) => {
        const frame = Buffer.from(`{${list.join(',')}}`)
        if (change !== undefined) frame[change[0] % frame.length] = change[1]
        expect(!isEventRefusal(checkClientEvent(frame, 'beta'))).toBe(isSound(frame))
      }),
      { numRuns: 5000 },
    )
  })
})

const JUDGED = ['type', 'audio', 'event_id']

/** The parser's path: other event types than append. */
function isSound(frame: Buffer): boolean {
  let fields: Record<string, unknown>
  if (!isUtf8(frame)) return false
  try {
    fields = JSON.parse(frame.toString()) as Record<string, unknown>
  } catch {
    return false
  }
  const { type, audio, event_id: id } = fields
  if (type !== APPEND || typeof audio !== 'string' || !STRICT.test(audio)) return false
  const hasDoubtfulName = Object.keys(fields).some(
    (name) => !JUDGED.includes(name) && JUDGED.includes(name.toLowerCase()),
  )
  return !hasDoubtfulName && (id === undefined || id === null || typeof id === 'string')
}

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
    [createdItem('{}'), 'item.type', 'missing_required_parameter'],
    [createdItem('{"type":"message","content":"hi"}'), 'item.content', 'invalid_type'],
    [createdItem('{"type":"message","content":[{}]}'), 'item.content[0].type', 'missing_required_parameter'],
    [
      createdItem('{"type":"message","content":[{"type":"input_audio","audio":"%%%%"}]}'),
      'item.content[0].audio',
      'invalid_value',
    ],
    [
      createdItem('{"type":"message","content":[{"type":"input_audio","audio":"\u0141AAA"}]}'),
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

  it('is refused among more members than are looked through', () => {
    const endless = `{${Array.from({ length: 2000 }, (_, index) => `"x${index}":1,`).join('')}"model":"voice-alias"}`
    expect(refused(update(endless), 'beta', { model }).param).toBe('session.model')
  })

  it.each([
    ['model', '{"type":"session.update","session":{"model":"other","voice":"v","mod\\u0065l":"voice-alias"}}'],
    ['session.Model', '{"type":"session.update","session":{"Model":"other"}}'],
    ['session.MODEL', '{"type":"transcription_session.update","session":{"model":"voice-alias","MODEL":"other"}}'],
    ['Session', '{"type":"session.update","session":{},"Session":{"model":"other"}}'],
    ['Type', '{"type":"response.cancel","Type":"session.update","session":{"model":"other"}}'],
    ['Type', '{"type":"input_audio_buffer.append","audio":"AAAA","Type":"session.update"}'],
    ['type', '{"type":"input_audio_buffer.append","audio":"AAAA","type":"session.update"}'],
    ['response.Model', '{"type":"response.create","response":{"Model":"other"}}'],
    ['response.model', '{"type":"response.create","response":{"model":"other"}}'],
    ['session.Type', '{"type":"session.update","session":{"Type":"transcription"}}'],
    ['session.Audio', '{"type":"session.update","session":{"Audio":{"input":{}}}}'],
    ['session.audio.Input', '{"type":"session.update","session":{"audio":{"Input":{}}}}'],
    ['response.Output_modalities', '{"type":"response.create","response":{"Output_modalities":["text"]}}'],
  ])('cannot be named for an upstream alone, as %s in %s', (param, text) => {
    expect(refused(text, 'beta', { model }).param).toBe(param)
  })

  it.each(['Voice', 'Turn_detection', 'Modalities', 'Max_response_output_tokens', 'Input_audio_transcription'])(
    'has no other spelling of the other dialect beside it: %s',
    (name) => {
      const session = `{"type":"session.update","session":{"type":"realtime","${name}":null}}`
      expect(refused(session, 'ga', { model })).toMatchObject({ param: `session.${name}`, code: 'ambiguous_key' })
    },
  )

  it('may be repeated by a response, and is not sent on', () => {
    expect(accepted(create('{"model":"voice-alias","instructions":"x"}'), 'ga', { model }).toString()).toBe(
      create('{"instructions":"x"}'),
    )
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

describe('The model that writes down what a client says', () => {
  const limits = { model: 'voice-alias', mayUse: (model: string) => model.startsWith('cheap') }

  it.each([
    ['beta', 'session.input_audio_transcription.model', update('{"input_audio_transcription":{"model":"dear-1"}}')],
    [
      'ga',
      'session.audio.input.transcription.model',
      update('{"type":"realtime","audio":{"input":{"transcription":{"model":"dear-1"}}}}'),
    ],
    [
      'beta',
      'session.audio.input.transcription.model',
      update(
        '{"input_audio_transcription":{"model":"cheap-1"},"audio":{"input":{"transcription":{"model":"dear-1"}}}}',
      ),
    ],
    [
      'beta',
      'session.input_audio_transcription.model',
      '{"type":"transcription_session.update","session":{"input_audio_transcription":{"model":"dear-1"}}}',
    ],
  ] as const)('is refused where the key has no access to it: %s, %s', (dialect, param, text) => {
    expect(refused(text, dialect, limits)).toMatchObject({
      code: 'model_not_allowed',
      message: "The model 'dear-1' is not served to this session, or not open to this API key.",
      param,
    })
  })

  it('is passed on where the key has access to it', () => {
    const text = update('{"input_audio_transcription":{"model":"cheap-1"}}')
    expect(accepted(text, 'beta', limits).toString()).toBe(text)
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
    [createdItem('{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}'), undefined],
  ])('%s shows %s', (text, shows) => {
    const checked = checkClientEvent(Buffer.from(text), undefined)
    if (isEventRefusal(checked)) throw new Error(checked.message)
    expect(checked.shows).toBe(shows)
  })

  it.each([
    [update('{"type":"realtime","audio":1}'), 'session.audio'],
    [update('{"voice":1}'), 'session.voice'],
    [update('{"modalities":["text"],"voice":1}'), 'session.voice'],
  ])('%s is judged by the dialect it shows', (text, param) => {
    expect(checkClientEvent(Buffer.from(text), undefined)).toMatchObject({ param })
  })
})

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
    expect(refused(frame)).toMatchObject({ code: 'json_too_many_values', param: null, eventId: 'e7' })
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(20_000_000)
  })

  it('65,536 values are still an event, and commas in texts are none', () => {
    const values = `${'0,'.repeat(65_530)}"${','.repeat(100_000)}"`
    expect(accepted(`{"type":"response.create","x":[${values}]}`).length).toBeGreaterThan(200_000)
    expect(refused(`{"type":"response.create","x":[${'0,'.repeat(10)}${values}]}`).code).toBe('json_too_many_values')
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
    const values = fc
      .json({ stringUnit: codePoint })
      .map((text) => Buffer.from(`{"type":"session.update","session":${text}}`))
    fc.assert(
      fc.property(
        fc.oneof(nearly, noise, values),
        fc.constantFrom<RealtimeDialect | undefined>('ga', 'beta', undefined),
        (frame, dialect) => {
          const checked = checkClientEvent(frame, dialect)
          if (!isEventRefusal(checked)) expect(checked.frame).toBe(frame)
        },
      ),
      { numRuns: 3000 },
    )
  })
})

const PAIRS: readonly (readonly [beta: string, ga: string])[] = [
  ['session.modalities', 'session.output_modalities'],
  ['session.modalities[1]', 'session.output_modalities[1]'],
  ['session.voice', 'session.audio.output.voice'],
  ['session.speed', 'session.audio.output.speed'],
  ['session.input_audio_format', 'session.audio.input.format'],
  ['session.output_audio_format', 'session.audio.output.format'],
  ['session.input_audio_transcription', 'session.audio.input.transcription'],
  ['session.input_audio_transcription.model', 'session.audio.input.transcription.model'],
  ['session.input_audio_noise_reduction.type', 'session.audio.input.noise_reduction.type'],
  ['session.turn_detection', 'session.audio.input.turn_detection'],
  ['session.turn_detection.threshold', 'session.audio.input.turn_detection.threshold'],
  ['session.max_response_output_tokens', 'session.max_output_tokens'],
  ['response.modalities', 'response.output_modalities'],
  ['response.voice', 'response.audio.output.voice'],
  ['response.output_audio_format', 'response.audio.output.format'],
]

describe('The path of a setting', () => {
  it.each(PAIRS)('%s is %s in GA, and back', (beta, ga) => {
    expect(pathToGa(beta)).toBe(ga)
    expect(pathToBeta(ga)).toBe(beta)
  })

  it('ends at the format, which is one word in beta', () => {
    expect(pathToBeta('session.audio.input.format.rate')).toBe('session.input_audio_format')
  })

  it.each([
    'session.voices',
    'session.tools[0].name',
    'item.content[0].type',
    'response.max_output_tokens',
    '',
    'audio',
  ])('stays when both have it, or neither: %j', (path) => {
    expect(pathToGa(path)).toBe(path)
    expect(pathToBeta(path)).toBe(path)
  })
})

describe('An error event', () => {
  it('names the field as its reader knows it, in the message too', () => {
    const frame = Buffer.from(
      `{"type":"error","error":{"code":null,"message":"Bad $& \\"x\\": 'session.audio.output.voice', not 'session.audio'.","param":"session.audio.output.voice","n":1.0}}`,
    )
    expect(withMappedParam(frame, pathToBeta).toString()).toBe(
      `{"type":"error","error":{"code":null,"message":"Bad $& \\"x\\": 'session.voice', not 'session.audio'.","param":"session.voice","n":1.0}}`,
    )
  })

  it.each([
    '{"type":"error","error":{"message":"m","param":null}}',
    '{"type":"error","error":{"message":"m"}}',
    '{"type":"error","error":"m"}',
    '{"type":"error"}',
    '{"type":"error","error":{"message":"m","param":"session.tools"}}',
    'error',
  ])('without such a field is the very same frame: %s', (text) => {
    const frame = Buffer.from(text)
    expect(withMappedParam(frame, pathToBeta)).toBe(frame)
  })
})

describe('In a transcription session', () => {
  const kind = 'transcription'
  const OTHER_KIND = 'Passing a realtime session update event to a transcription session is not allowed.'

  it.each<[string, object, string]>([
    ['a response', { type: 'response.create' }, 'type'],
    ['a session of another type', { type: 'session.update', session: { type: 'realtime' } }, 'session.type'],
  ])('a client of GA is refused %s', (_name, event, param) => {
    const found = refused(JSON.stringify({ ...event, event_id: 'ev_1' }), 'ga', { kind })
    expect(found).toMatchObject({ code: 'invalid_session_type', param, eventId: 'ev_1' })
  })

  it.each<[string, object]>([
    ['a response', { type: 'response.create', response: {} }],
    ['an update of a conversation', { type: 'session.update', session: { voice: 'alloy' } }],
  ])('a client of beta is refused %s', (_name, event) => {
    expect(refused(JSON.stringify(event), 'beta', { kind })).toMatchObject({
      code: 'invalid_session_type',
      param: 'type',
    })
  })

  it('the refusal of an update is the upstream’s', () => {
    expect(refused(update('{"type":"realtime"}'), 'ga', { kind }).message).toBe(OTHER_KIND)
  })

  it.each(['"gpt-realtime"', 'null', '5'])('no model but the one that transcribes can be named: not %s', (model) => {
    const text = update(`{"type":"transcription","model":${model}}`)
    expect(refused(text, 'ga', { kind })).toMatchObject({ code: 'invalid_value', param: 'session.model' })
  })

  it('the model it was opened with may be repeated, and is cut out', () => {
    const limits = { kind, model: 'whisper-1' } as const
    const text = update('{"type":"transcription","model":"whisper-1"}')
    expect(accepted(text, 'ga', limits).toString()).not.toContain('whisper-1')
    expect(refused(update('{"type":"transcription","model":"gpt-realtime"}'), 'ga', limits).param).toBe('session.model')
  })

  it('the model that transcribes must be one the key may use', () => {
    const limits = { kind, mayUse: (model: string) => model === 'whisper-1' } as const
    const named = (model: string): string =>
      update(`{"type":"transcription","audio":{"input":{"transcription":{"model":"${model}"}}}}`)
    expect(accepted(named('whisper-1'), 'ga', limits).toString()).toBe(named('whisper-1'))
    const param = 'session.audio.input.transcription.model'
    expect(refused(named('gpt-4o-transcribe'), 'ga', limits)).toMatchObject({ code: 'model_not_allowed', param })
  })

  it('everything else is as in a conversation', () => {
    for (const type of ['input_audio_buffer.commit', 'input_audio_buffer.clear', 'response.cancel']) {
      expect(accepted(JSON.stringify({ type }), 'ga', { kind }).toString()).toBe(`{"type":"${type}"}`)
    }
  })
})

describe('The name of a model that transcribes', () => {
  const GA =
    '{"type":"session.update","session":{"type":"transcription","audio":{"input":{"transcription":{"model":"ours","n":1.0}}}}}'
  const BETA = '{"type":"transcription_session.update","session":{"input_audio_transcription":{"model":"ours"}}}'
  const typeIn = (text: string): string => (JSON.parse(text) as { type: string }).type

  it.each([GA, BETA])('is the upstream’s for the upstream, and the client’s for the client: %s', (text) => {
    const names = new TranscriptionModelNames({ ours: 'whisper-1' })
    const sent = names.toUpstream(typeIn(text), Buffer.from(text)).toString()
    expect(sent).toBe(text.replace('ours', 'whisper-1'))
    const answer = sent.replace('.update', '.updated')
    expect(names.toClient(typeIn(answer), Buffer.from(answer)).toString()).toBe(text.replace('.update', '.updated'))
  })

  it('is left where the channel has no other, and where the client has used the upstream’s itself', () => {
    const names = new TranscriptionModelNames({ ours: 'whisper-1' })
    names.toUpstream('session.update', Buffer.from(GA))
    const own = Buffer.from(GA.replace('ours', 'whisper-1'))
    expect(names.toUpstream('session.update', own)).toBe(own)
    expect(names.toClient('session.updated', own)).toBe(own)
  })

  it('is looked for in settings alone', () => {
    const names = new TranscriptionModelNames({ ours: 'whisper-1' })
    const frame = Buffer.from(GA)
    expect(names.toUpstream('conversation.item.create', frame)).toBe(frame)
    expect(names.toClient('response.done', frame)).toBe(frame)
  })
})
