import { isUtf8 } from 'node:buffer'
import { describe, expect, it, jest } from '@jest/globals'
import fc from 'fast-check'
import { checkClientEvent, isEventRefusal } from './client-events.js'

const APPEND = 'input_audio_buffer.append'
const STRICT = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

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
  const judged = checkClientEvent(Buffer.from(text), 'beta', limits)
  return isEventRefusal(judged) ? judged : {}
}

describe.each(LAYOUTS)('An audio append with %s', (_, layout) => {
  it('goes on as the very same frame, and no parser has seen it', () => {
    const parse = jest.spyOn(JSON, 'parse')
    try {
      const frame = Buffer.from(layout(Buffer.alloc(4800, 7).toString('base64')))
      const judged = checkClientEvent(frame, 'beta')
      expect(isEventRefusal(judged)).toBe(false)
      expect('frame' in judged && judged.frame).toBe(frame)
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

  it('keeps fields nobody knows and an event_id in any script', () => {
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

/** The slow way; other event types do not come out of the damage above. */
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
  return id === undefined || id === null || typeof id === 'string'
}
