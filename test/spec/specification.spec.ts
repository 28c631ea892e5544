import 'reflect-metadata'
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import type { Type } from '@nestjs/common'
import type { OpenApiDocument } from '../../src/app/openapi.js'
import { ACCEPTED_FILE_FORMATS } from '../../src/audio/audio-facts.js'
import { SpeechRequestDto } from '../../src/audio/speech.dto.js'
import {
  DEFAULT_RESPONSE_FORMAT,
  TranscriptionRequestDto,
  TranslationRequestDto,
} from '../../src/audio/transcription.dto.js'
import { ChatRequestDto } from '../../src/chat/chat.dto.js'
import { PROVIDERS } from '../../src/app/providers.js'
import { CLASS_FORMATS, type ModelClass } from '../../src/config/model-classes.js'
import { DtoCheck, schemaOf } from '../../src/core/dto.js'
import { type ErrorKind, GatewayError } from '../../src/core/errors.js'
import { renderError } from '../../src/dialects/error-format.js'
import {
  checkClientEvent,
  clientEventTypes,
  isEventRefusal,
  rulesOf,
} from '../../src/dialects/realtime/client-events.js'
import type { EventRefusal } from '../../src/dialects/realtime/session-rules.js'
import { AUDIO_FORMATS, DEFAULT_AUDIO_FORMAT } from '../../src/dialects/speech-formats.js'
import { successEnvelope } from '../../src/dialects/task-response.js'
import { MessagesRequestDto } from '../../src/messages/messages.dto.js'
import { IMAGE_TASK_FIELDS } from '../../src/providers/imggen/imggen-wire.js'
import { p2Format, p2Voice } from '../../src/providers/p2/p2-request.js'
import { P3_VOICES, readP3Metadata } from '../../src/providers/p3/p3-request.js'
import { builtInModels } from '../../src/routing/channel.js'
import { MAXIMUM_IMAGE_BYTES, MAXIMUM_IMAGE_RATIO, MINIMUM_IMAGE_PIXELS } from '../../src/video/image-rules.js'
import {
  ASPECT_RATIOS,
  CAMERA_AXES,
  DEFAULT_MODELS,
  MAXIMUM_IMAGES,
  MAXIMUM_PROMPT_CHARACTERS,
  MODES,
  MULTI_IMAGE_DURATIONS,
  MULTI_IMAGE_MODELS,
  MultiImageVideoDto,
  TEXT_DURATIONS,
  TextVideoDto,
} from '../../src/video/video.dto.js'
import { pngText } from '../support/byte-streams.js'
import { parseConfig } from '../support/config.js'
import {
  alternatives,
  asObject,
  ASYNC_API_TEXT,
  asyncApi,
  type Event,
  eventFieldsOf,
  lineAfter,
  listOf,
  messages,
  payloadOf,
  resolved,
  type Row,
  type Schema,
  schemas,
  sectionOf,
  tableOf,
  typesOf,
} from '../support/specification.js'
import { askForImage, imagePath, type ImggenGateway, startImggenGateway } from '../support/task-gateways.js'

const SPEECH = 'Speech request'
const TRANSCRIPTION = 'Transcription request'
const TRANSLATION = 'Translation request'

describe('specification', () => {
  const idsOf = (modelClass: ModelClass, provider: string): string[] =>
    builtInModels(PROVIDERS)
      .filter((row) => row.class === modelClass && row.providers.includes(provider))
      .map(({ id }) => id)
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
      renderError(new GatewayError(kind, 'What went wrong.'), 'openai-audio', 'req_1')

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
})

/** Request tables: a good body, and whether a form's text fields stand for its numbers. */
const REQUESTS: readonly (readonly [string, Type<object>, Record<string, unknown>])[] = [
  [SPEECH, SpeechRequestDto, { model: 'tts-1', input: 'Hello', voice: 'alloy' }],
  [TRANSCRIPTION, TranscriptionRequestDto, { file: 'judged elsewhere', model: 'whisper-1' }],
  [TRANSLATION, TranslationRequestDto, { file: 'judged elsewhere', model: 'whisper-1' }],
]

describe.each(REQUESTS)('the %s', (heading, dto, good) => {
  const check = new DtoCheck(dto)
  const rows = tableOf(heading, 'Field')

  it('is accepted with exactly the required fields of the table', () => {
    const required = rows.filter((row) => row['Required'] === 'yes').map((row) => row['Field'])
    expect(Object.keys(good).sort()).toEqual([...required].sort())
    expect(check.accepts(good)).toBe(true)
  })

  it.each(rows.filter((row) => row['Required'] === 'yes').map((row) => [row['Field'] ?? '', row['Notes'] ?? '']))(
    'is refused without %s, unless that has a default or is a file',
    (name, notes) => {
      const rest = Object.fromEntries(Object.entries(good).filter(([key]) => key !== name))
      expect(check.accepts(rest)).toBe(name === 'file' || notes.startsWith('default'))
    },
  )
})

/** A value of no use for a field of the type the specification gives it. */
const WRONG: Readonly<Record<string, unknown>> = {
  string: 5,
  array: 'x',
  'array of string': 'x',
  boolean: 'yes',
  integer: 1.5,
  number: 'x',
  float: 'x',
  object: 'x',
}

const JSON_REQUESTS: readonly (readonly [string, Type<object>, Record<string, unknown>])[] = [
  [SPEECH, SpeechRequestDto, { model: 'tts-1', input: 'Hello', voice: 'alloy' }],
  ['Chat completion', ChatRequestDto, { model: 'gpt-4o', messages: [{ role: 'user', content: 'Hi' }] }],
]

describe.each(JSON_REQUESTS)('the %s', (heading, dto, good) => {
  const check = new DtoCheck(dto)

  it.each(tableOf(heading, 'Field').map((row) => [row['Field'] ?? '', row['Type'] ?? '']))(
    'is refused, and names the field, when %s is no %s',
    (name, type) => {
      expect(check.accepts(good)).toBe(true)
      expect(Object.keys(WRONG)).toContain(type)
      const refused = { ...good, [name]: WRONG[type] }
      expect(() => check.assert(refused)).toThrow(
        expect.objectContaining({ kind: 'invalid_request', details: expect.objectContaining({ param: name }) }),
      )
    },
  )
})

describe('the messages request', () => {
  const check = new DtoCheck(MessagesRequestDto)
  const good = { model: 'x', max_tokens: 2000, messages: [{ role: 'user', content: 'Hi' }] }
  const text = sectionOf('Messages-style chat (POST /v1/messages, JSON)')

  it.each(['model (string)', 'max_tokens (integer)', 'messages (array of {role, content})'])('needs %s', (field) => {
    expect(text).toContain(field)
    const name = field.split(' ')[0] ?? ''
    expect(check.accepts(good)).toBe(true)
    expect(check.accepts(Object.fromEntries(Object.entries(good).filter(([key]) => key !== name)))).toBe(false)
  })

  it('takes the thinking mode the specification shows', () => {
    expect(text).toContain('thinking (optional object {type: string, value enabled; budget_tokens: integer})')
    expect(check.accepts({ ...good, thinking: { type: 'enabled', budget_tokens: 1024 } })).toBe(true)
    expect(check.accepts({ ...good, thinking: { type: 'enabled', budget_tokens: 'many' } })).toBe(false)
  })
})

describe('the limits', () => {
  const limits = new Map(tableOf('Limits', 'Limit').map((row) => [row['Limit'], row['Value']]))
  const range = (name: string): [number, number] => {
    const [low = NaN, high = NaN] = (limits.get(name) ?? '').split(' to ').map(Number)
    return [low, high]
  }

  it('of speed are those of the table', () => {
    const [low, high] = range('speed')
    const check = new DtoCheck(SpeechRequestDto)
    const accepts = (speed: number): boolean => check.accepts({ model: 'tts-1', input: 'x', voice: 'alloy', speed })
    expect([low, high].map(accepts)).toEqual([true, true])
    expect([low - 0.001, high + 0.001].map(accepts)).toEqual([false, false])
  })

  it.each([TranscriptionRequestDto, TranslationRequestDto])('of temperature are those of the table in %p', (dto) => {
    const [low, high] = range('temperature')
    const check = new DtoCheck<object>(dto)
    const accepts = (value: number): boolean => check.accepts({ model: 'whisper-1', temperature: String(value) })
    expect([low, high].map(accepts)).toEqual([true, true])
    expect([low - 0.001, high + 0.001].map(accepts)).toEqual([false, false])
  })

  it('of an audio file is the one of the table, and a body has room for it', () => {
    const megabytes = Number(/^generally (\d+) MB$/.exec(limits.get('audio file size') ?? '')?.[1])
    const { audioFileBytes, audioBodyBytes } = parseConfig('{}', {}).limits
    expect(audioFileBytes).toBe(megabytes * 1024 * 1024)
    expect(audioBodyBytes).toBeGreaterThan(audioFileBytes)
  })
})

/** `alloy (neutral, balanced), echo (…)` → `alloy`, `echo`. */
const VOICES = [...lineAfter(SPEECH, 'Voice IDs:').matchAll(/(\w+) \([^)]*\)/g)].map(([, voice]) => voice ?? '')

describe('the standard voices', () => {
  it('are six, and each has a preset of its own at P2 and at P3', () => {
    expect(VOICES).toHaveLength(6)
    expect(new Set(VOICES.map((voice) => p2Voice(voice))).size).toBe(6)
    expect(Object.keys(P3_VOICES)).toEqual(VOICES)
    expect(new Set(Object.values(P3_VOICES)).size).toBe(6)
  })

  it('have the sex at P2 that the specification gives them', () => {
    const line = lineAfter(SPEECH, 'P2 maps voices to presets:')
    const sexes = [...line.matchAll(/(\w+) to (male|female) /g)]
    expect(sexes.map(([, voice]) => voice)).toEqual(VOICES)
    for (const [, voice = '', sex = ''] of sexes) expect(p2Voice(voice)).toContain(`_${sex}_`)
  })
})

describe('the formats at P2', () => {
  const clauses = lineAfter(SPEECH, 'P2 format mapping:').split(';')

  it('are made from what the specification says, wav from the samples that can be streamed', () => {
    const mapped = clauses.flatMap((clause) => {
      const [, names = '', target = ''] = /^\s*(.+?) (?:fall back )?to (\w+)$/.exec(clause) ?? []
      return names.split(' and ').map((name) => [name, target] as const)
    })
    expect(mapped.map(([name]) => name).sort()).toEqual(Object.keys(AUDIO_FORMATS).sort())
    for (const [name, target] of mapped) {
      const { encoding, sentAs, fallback } = p2Format(name)
      expect(name === 'wav' ? sentAs : encoding).toBe(target)
      expect(fallback).toBe(name === 'aac' || name === 'flac' ? 'mp3' : undefined)
    }
  })
})

describe('the extra parameters of P3', () => {
  const rows = tableOf(SPEECH, 'Parameter')
  const samples: Readonly<Record<string, unknown>> = {
    'voice_setting.emotion': 'happy',
    language_boost: 'English',
    output_format: 'url',
  }
  const OF_TYPE: Readonly<Record<string, readonly [unknown, unknown]>> = {
    float: [1.5, '1.5'],
    string: [undefined, 5],
    bool: [true, 'true'],
  }
  const nested = (path: string, value: unknown): Record<string, unknown> =>
    path
      .split('.')
      .reverse()
      .reduce<unknown>((inner, name) => ({ [name]: inner }), value) as Record<string, unknown>

  it.each(rows.map((row) => [row['Parameter'] ?? '', row['Type'] ?? '']))('take %s as %s', (path, type) => {
    const [good, bad] = OF_TYPE[type] ?? []
    expect(() => readP3Metadata(nested(path, good ?? samples[path]))).not.toThrow()
    const refuse = (): unknown => readP3Metadata(nested(path, bad))
    expect(refuse).toThrow(GatewayError)
    expect(refuse).toThrow(
      expect.objectContaining({ details: expect.objectContaining({ param: `metadata.${path}` }) as unknown }),
    )
  })

  it('are seven', () => {
    expect(rows).toHaveLength(7)
    expect(listOf(rows.map((row) => row['Parameter']).join(','))).toContain('voice_setting.pitch')
  })
})

describe('specification video', () => {
  const MULTI_IMAGE = 'Video task (multi-image)'
  const TEXT = 'Video task (text-to-video)'

  /** The fields and defaults a DTO documents: the last word on what it checks, as one line declares both. */
  const documented = (dto: Type<object>): Readonly<Record<string, { readonly default?: unknown }>> =>
    schemaOf(dto, '', '').properties ?? {}

  describe('a multi-image create', () => {
    const rows = tableOf(MULTI_IMAGE, 'Field')
    const row = (name: string): Row => rows.find(({ Field: field }) => field === name) ?? {}
    const fields = documented(MultiImageVideoDto)
    const good = { prompt: 'x', image_list: [{ image: pngText() }] }
    const check = new DtoCheck(MultiImageVideoDto)

    it('has the fields of the table, in its order', () => {
      expect(Object.keys(fields)).toEqual(rows.map(({ Field: field }) => field))
    })

    it('needs the required fields of the table and no others', () => {
      const required = rows.filter((each) => each['Required'] === 'yes').map(({ Field: field }) => field)
      expect(Object.keys(good).sort()).toEqual([...required].sort())
      expect(check.accepts(good)).toBe(true)
      for (const name of required) {
        expect(check.accepts(Object.fromEntries(Object.entries(good).filter(([field]) => field !== name)))).toBe(false)
      }
    })

    it('documents the defaults of the table', () => {
      const defaults = rows.filter((each) => each['Default'] !== '').map((each) => [each['Field'], each['Default']])
      const found = Object.entries(fields).flatMap(([name, field]) =>
        'default' in field ? [[name, field.default]] : [],
      )
      expect(found).toEqual(defaults)
      expect(DEFAULT_MODELS['multi-image2video']).toBe(row('model_name')['Default'])
    })

    it('allows the values of the table', () => {
      const allowed = (name: string): string[] => listOf(/allowed:? (.*)$/.exec(row(name)['Notes'] ?? '')?.[1] ?? '')
      expect([...MULTI_IMAGE_MODELS]).toEqual(allowed('model_name'))
      expect([...MULTI_IMAGE_DURATIONS]).toEqual(allowed('duration'))
      expect([...ASPECT_RATIOS]).toEqual(allowed('aspect_ratio'))
      expect(row('mode')['Notes']).toMatch(new RegExp(`^${MODES[0]} .* or ${MODES[1]} `))
    })

    it('is refused with a value of another type, naming the field', () => {
      const wrong = { string: true, 'array of {image: string}': 'x', 'object {enabled: boolean}': { enabled: 'x' } }
      for (const { Field: name = '', Type: type = '' } of rows) {
        expect(Object.keys(wrong)).toContain(type)
        const refused = { ...good, [name]: wrong[type as keyof typeof wrong] }
        const details: unknown = expect.objectContaining({ param: expect.stringMatching(new RegExp(`^${name}`)) })
        expect(() => check.assert(refused)).toThrow(expect.objectContaining({ details }))
      }
    })

    it('has the limits of the table and of the list of limits', () => {
      const limits = new Map(tableOf('Limits', 'Limit').map((each) => [each['Limit'], each['Value']]))
      expect(limits.get('reference images')).toBe(`at most ${MAXIMUM_IMAGES}`)
      expect(limits.get('prompt and negative_prompt')).toBe(`at most ${MAXIMUM_PROMPT_CHARACTERS} characters each`)
      const { longer, shorter } = MAXIMUM_IMAGE_RATIO
      expect(limits.get('image size')).toBe(
        `at most ${MAXIMUM_IMAGE_BYTES / 1024 / 1024} MB, at least ${MINIMUM_IMAGE_PIXELS} px, aspect ratio 1:${longer / shorter} to ${longer / shorter}:1`,
      )
      expect(row('prompt')['Notes']).toBe(`at most ${MAXIMUM_PROMPT_CHARACTERS} characters`)
      expect(row('image_list')['Notes']).toContain(`up to ${MAXIMUM_IMAGES} entries`)
    })

    it('has images by the rules of the specification', () => {
      const rules = lineAfter(MULTI_IMAGE, 'Image rules:')
      expect(rules).toContain('raw string without any data: prefix; formats .jpg, .jpeg, .png; at most 10 MB')
      expect(check.accepts({ ...good, image_list: [{ image: `data:image/png;base64,${pngText()}` }] })).toBe(false)
      // Four of the largest images in Base64, and the rest of the body, must fit.
      const { imageBodyBytes } = parseConfig('{}', {}).limits
      expect(imageBodyBytes).toBeGreaterThan(Math.ceil(MAXIMUM_IMAGE_BYTES / 3) * 4 * MAXIMUM_IMAGES)
    })
  })

  describe('a text-to-video create', () => {
    const text = sectionOf(TEXT)

    it('has every field the specification shows, with a value it shows', () => {
      const shown = /Request fields: (.*?)\. Response:/s.exec(text)?.[1] ?? ''
      const names = shown.replace(/\{.*\}/, '()').match(/[a-z_]+(?= [({])/g) ?? []
      expect(names).toEqual(expect.arrayContaining(['model_name', 'camera_control', 'callback_url']))
      expect(Object.keys(documented(TextVideoDto))).toEqual(expect.arrayContaining(names))
      expect(shown).toContain(`config {${CAMERA_AXES.join(', ')}: numbers}`)
      expect(shown).toContain('mode (string, value std shown)')
      expect(shown).toContain('aspect_ratio (string, 16:9 shown), duration (number shown)')
      expect([MODES, ASPECT_RATIOS]).toEqual([expect.arrayContaining(['std']), expect.arrayContaining(['16:9'])])
      const check = new DtoCheck(TextVideoDto)
      for (const seconds of TEXT_DURATIONS) expect(check.accepts({ prompt: 'x', duration: Number(seconds) })).toBe(true)
    })

    it('lets every other parameter pass', () => {
      expect(text).toContain('Other parameters follow the upstream interface unchanged.')
      expect(new DtoCheck(TextVideoDto).accepts({ prompt: 'x', sound: 'on', multi_shot: [{ a: 1 }] })).toBe(true)
    })
  })

  it('a success has the envelope of the specification', () => {
    expect(lineAfter(MULTI_IMAGE, 'Envelope of every response:')).toBe(
      'code (integer, 0 means success), message (string), request_id (string), data',
    )
    const envelope = JSON.parse(successEnvelope('req_1', '{}')) as Record<string, unknown>
    expect(Object.entries(envelope).map(([name, value]) => [name, typeof value])).toEqual([
      ['code', 'number'],
      ['message', 'string'],
      ['request_id', 'string'],
      ['data', 'object'],
    ])
    expect(envelope['code']).toBe(0)
  })
})

describe('specification image', () => {
  interface Schema {
    readonly $ref?: string
    readonly type?: string
    readonly required?: readonly string[]
    readonly properties?: Readonly<Record<string, Schema>>
    readonly items?: Schema
  }

  /** "a (string, X shown), b, c (integer Unix milliseconds), d (array of {…})": name → what stands in the brackets. */
  function fieldsOf(text: string): Map<string, string> {
    const found = new Map<string, string>()
    for (const [, names = '', about = ''] of text.matchAll(/(\w+(?:, \w+)*) \(([^)]*)\)/g)) {
      for (const name of listOf(names)) found.set(name, about)
    }
    return found
  }

  const FIELDS = fieldsOf(lineAfter('Image task', 'Fields:').split('. ')[0] ?? '')
  const typesOf = (fields: Map<string, string>): Record<string, string> =>
    Object.fromEntries([...fields].map(([name, about]) => [name, /^\w+/.exec(about)?.[0] ?? '']))

  let lab: ImggenGateway
  let document: OpenApiDocument
  beforeAll(async () => {
    lab = await startImggenGateway({ simulator: { variant: 'N' } })
    document = (await (await fetch(`${lab.gateway.url}/docs/openapi.json`)).json()) as OpenApiDocument
  })
  afterAll(() => lab.close())

  /** A schema of the document, itself or in its components. */
  const shown = (schema: Schema = {}): Schema =>
    schema.$ref === undefined
      ? schema
      : (document.components.schemas[schema.$ref.replace('#/components/schemas/', '')] as Schema)

  /** What an operation is documented to answer with. */
  function answerOf(question: string): Schema {
    const answer = document.paths[`/imggen/task/{id}/${question}`]?.['get']?.responses['200']
    const { content } = answer as { readonly content: Readonly<Record<string, { readonly schema: Schema }>> }
    return shown(content['application/json']?.schema)
  }

  it('the image routes are those of the specification, beside the events', () => {
    const cell = tableOf('What the service does', 'Capability').find(({ Capability: name }) =>
      name?.startsWith('Image'),
    )
    expect(cell?.['Method and path']).toBe('GET /imggen/task/{id}/fetch, GET /imggen/task/{id}/image-seed')
    expect(Object.keys(document.paths).filter((path) => path.startsWith('/imggen'))).toEqual([
      '/imggen/task/{id}/fetch',
      '/imggen/task/{id}/image-seed',
      '/imggen/task/{id}/events',
    ])
  })

  describe('An image task', () => {
    it('has eighteen fields in the specification', () => {
      expect(FIELDS.size).toBe(18)
      expect([...FIELDS.keys()].slice(8, 12)).toEqual(['submitTime', 'startTime', 'finishTime', 'imageUrl'])
    })

    it('is completed with the fields of the specification, in its order and of its types', () => {
      expect(Object.entries(IMAGE_TASK_FIELDS)).toEqual(Object.entries(typesOf(FIELDS)))
    })

    it.each(['fetch', 'image-seed'])('is documented with the fields of the specification (%s)', (question) => {
      const { properties = {}, required } = answerOf(question)
      expect(Object.entries(properties).map(([name, schema]) => [name, shown(schema).type])).toEqual(
        Object.entries(typesOf(FIELDS)),
      )
      expect(required).toEqual([...FIELDS.keys()])
      const buttons = /^array of \{(.*)\}$/.exec(FIELDS.get('buttons') ?? '')?.[1] ?? ''
      expect(
        Object.entries(shown(properties['buttons']?.items).properties ?? {}).map(([n, { type }]) => `${n} ${type}`),
      ).toEqual(listOf(buttons))
      for (const [name] of (FIELDS.get('properties') ?? '').matchAll(/\w+(?= string)/g)) {
        expect(shown(properties['properties']).properties?.[name]).toMatchObject({ type: 'string' })
      }
    })

    it('has every field, of its type, whatever the upstream leaves out', async () => {
      const empty: Readonly<Record<string, unknown>> = { string: '', integer: 0, array: [], object: {} }
      const id = lab.simulator.submit('a kite')
      for (const step of ['NOT_START', 'SUBMITTED', 'IN_PROGRESS']) {
        const { body } = await askForImage(lab.gateway, imagePath(id))
        expect(body['status']).toBe(step)
        for (const [name, type] of Object.entries(typesOf(FIELDS))) {
          expect([name, Array.isArray(body[name]), typeof body[name]]).toEqual([
            name,
            type === 'array',
            typeof empty[type],
          ])
          if (type === 'integer') expect(Number.isSafeInteger(body[name])).toBe(true)
        }
        lab.simulator.advance(id)
      }
    })

    it('that has succeeded is as the specification says', async () => {
      expect(sectionOf('States and transitions')).toContain(
        'NOT_START and SUCCESS (a successful task also has progress 100 percent and an imageUrl)',
      )
      const id = lab.simulator.submit('a kite')
      lab.simulator.finish(id)
      expect((await askForImage(lab.gateway, imagePath(id))).body).toMatchObject({
        status: 'SUCCESS',
        progress: '100%',
        imageUrl: expect.stringMatching(/^http/),
      })
    })
  })
})

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
    const { paths } = JSON.parse(OPEN_API_TEXT) as OpenApiDocument
    const events = paths['/v1/realtime']?.['get']?.['x-client-events'] as Record<string, Schema>
    for (const name of ['SessionUpdate', 'InputAudioAppend', 'ResponseCreate']) {
      const { type, required, properties } = events[name] ?? {}
      expect([name, schemas[name]]).toEqual([name, { type, required, properties }])
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
    // Settings as the other dialect has them go to an upstream that reads these.
    const ofOtherDialect = ['session.audio', 'response.audio']
    expect([...asked].filter((path) => !known.includes(path) && !ofOtherDialect.includes(path))).toEqual([])
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
