import 'reflect-metadata'
import { describe, expect, it } from '@jest/globals'
import { ACCEPTED_FILE_FORMATS } from '../../src/audio/audio-facts.js'
import { CLASS_FORMATS, DEFAULT_RESPONSE_FORMAT } from '../../src/audio/response-formats.js'
import type { ModelClass, ProviderName } from '../../src/config/channel-config.js'
import type { ErrorKind } from '../../src/core/errors.js'
import { GatewayError } from '../../src/core/gateway-error.js'
import { AUDIO_FORMATS, DEFAULT_AUDIO_FORMAT } from '../../src/dialects/audio-formats.js'
import { renderError } from '../../src/dialects/error-format.js'
import { BUILT_IN_MODELS } from '../../src/routing/models.table.js'
import { lineAfter, listOf, type Row, sectionOf, tableOf } from '../support/specification.js'

const SPEECH = 'Speech request'
const TRANSCRIPTION = 'Transcription request'
const TRANSLATION = 'Translation request'

const idsOf = (modelClass: ModelClass, provider: ProviderName): string[] =>
  BUILT_IN_MODELS.filter((row) => row.class === modelClass && row.providers.includes(provider)).map(({ id }) => id)
const isDated = (id: string): boolean => /-\d{4}-\d{2}-\d{2}$/.test(id)

describe('the audio formats', () => {
  const table = tableOf(SPEECH, 'response_format')

  it('and their content types are those of the table', () => {
    expect(Object.entries(AUDIO_FORMATS)).toEqual(table.map((row) => [row['response_format'], row['Content-Type']]))
  })

  it('have the default of the table', () => {
    expect(table.filter((row) => row['Notes'] === 'default').map((row) => row['response_format'])).toEqual([
      DEFAULT_AUDIO_FORMAT,
    ])
  })
})

describe('the models of speech', () => {
  const line = lineAfter(SPEECH, 'TTS model identifiers:')
  const [plain = '', style = '', p3 = ''] = line.split(';').map((part) => part.trim())

  it('of P1 are those the specification names', () => {
    expect(plain).toMatch(/ \(P1\)$/)
    expect(idsOf('tts', 'p1')).toEqual(listOf(plain.replace(' (P1)', '')))
  })

  it('of the style-capable class are one undated and two dated ones', () => {
    expect(style).toBe('three identifiers of the style-capable class (one undated, two dated) (P1)')
    expect(idsOf('tts-style', 'p1').map(isDated)).toEqual([false, true, true])
  })

  it('of P3 are those the specification names', () => {
    expect(p3).toMatch(/ \(P3\)$/)
    expect(idsOf('tts', 'p3')).toEqual(listOf(p3.replace(' (P3)', '')))
  })
})

describe('the classes of transcription', () => {
  const [standard, generation] = tableOf(TRANSCRIPTION, 'Class')
  const formats = (row: Row | undefined): string[] =>
    listOf((row?.['response_format allowed'] ?? '').replace(/ only$/, ''))

  it('allow the formats of the table', () => {
    expect([standard?.['Class'], generation?.['Class']]).toEqual(['S (standard)', 'G (generation-based)'])
    expect(CLASS_FORMATS['stt-standard']).toEqual(formats(standard))
    expect(CLASS_FORMATS['stt-generation']).toEqual(formats(generation))
    // Decision of the design: the class G model that tells speakers apart also gives what upstream calls diarized_json.
    expect(CLASS_FORMATS['stt-diarize']).toEqual([...formats(generation), 'diarized_json'])
  })

  it('have the models of the table', () => {
    expect(standard?.['Identifiers']).toBe('one identifier')
    expect(idsOf('stt-standard', 'p1')).toHaveLength(1)
    expect(generation?.['Identifiers']).toMatch(/speaker-diarization.*a mini model, and two dated mini versions/)
    expect(idsOf('stt-diarize', 'p1')).toHaveLength(1)
    const minis = idsOf('stt-generation', 'p1').filter((id) => id.includes('mini'))
    expect(minis.map(isDated)).toEqual([false, true, true])
    expect(idsOf('stt-generation', 'p1').length).toBeGreaterThan(minis.length)
  })

  it('default to the format of the request tables', () => {
    for (const heading of [TRANSCRIPTION, TRANSLATION]) {
      const row = tableOf(heading, 'Field').find(({ Field: name }) => name === 'response_format')
      expect(row?.['Notes']).toBe(`default ${DEFAULT_RESPONSE_FORMAT}`)
    }
  })

  it('refuse another format with the code of the specification', () => {
    expect(sectionOf('Errors')).toContain(
      'Requesting verbose_json, srt or vtt from a class G model returns an error with code unsupported_value.',
    )
    expect(CLASS_FORMATS['stt-generation']).not.toEqual(expect.arrayContaining(['verbose_json']))
  })
})

it('the accepted file formats are those of the specification', () => {
  expect([...ACCEPTED_FILE_FORMATS]).toEqual(listOf(lineAfter(TRANSCRIPTION, 'Accepted file formats:')))
})

/** The cases of the audio error table, in the words of the specification. */
const CASES: Readonly<Record<string, readonly ErrorKind[]>> = {
  'missing required fields (such as file or model), unsupported format, file over the size limit, invalid language code, undecodable audio':
    ['invalid_request', 'unknown_model'],
  'invalid API key': ['unauthorized', 'key_missing', 'key_malformed'],
  'no access to the model': ['forbidden_model'],
  'request body too large': ['payload_too_large'],
  'too many requests': ['rate_limited'],
  'upstream provider error': ['upstream_failed', 'upstream_timeout'],
}

describe('the audio errors', () => {
  const rows = tableOf('Errors', 'HTTP status')
  const rendered = (kind: ErrorKind): { status: number; body: string } =>
    renderError(new GatewayError(kind, 'What went wrong.'), '/v1/audio/speech', 'req_1')

  it('are those of the table', () => {
    expect(rows.map((row) => row['Case'])).toEqual(Object.keys(CASES))
  })

  it.each(rows.map((row) => [row['Case'] ?? '', Number(row['HTTP status'])]))('for %s are a %i', (name, status) => {
    for (const kind of CASES[name] ?? []) expect(rendered(kind).status).toBe(status)
  })

  it('have the body of the specification', () => {
    expect(sectionOf('Errors')).toContain('Audio error body: {error: {message string, type string, code string}}')
    const { error } = JSON.parse(rendered('unauthorized').body) as { error: Record<string, unknown> }
    expect(error).toMatchObject({
      message: 'What went wrong.',
      type: expect.any(String),
      code: expect.any(String),
    })
  })
})

it('the model of multi-image video is in the catalogue', () => {
  const row = tableOf('Video task (multi-image)', 'Field').find(({ Field: name }) => name === 'model_name')
  expect(row?.['Notes']).toBe(`allowed: ${row?.['Default'] ?? ''}`)
  expect(idsOf('video', 'vidgen')).toContain(row?.['Default'])
})
