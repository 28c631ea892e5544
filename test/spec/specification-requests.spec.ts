import 'reflect-metadata'
import { describe, expect, it } from '@jest/globals'
import type { Type } from '@nestjs/common'
import { SpeechRequestDto } from '../../src/audio/speech.dto.js'
import { TranscriptionRequestDto, TranslationRequestDto } from '../../src/audio/transcription.dto.js'
import { ChatRequestDto } from '../../src/chat/chat.dto.js'
import { parseConfig } from '../../src/config/load-config.js'
import { DtoCheck } from '../../src/core/dto-check.js'
import { MessagesRequestDto } from '../../src/messages/messages.dto.js'
import { sectionOf, tableOf } from '../support/specification.js'

const SPEECH = 'Speech request'
const TRANSCRIPTION = 'Transcription request'
const TRANSLATION = 'Translation request'

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
    async (name, type) => {
      expect(check.accepts(good)).toBe(true)
      expect(Object.keys(WRONG)).toContain(type)
      const refusal = check.assert({ ...good, [name]: WRONG[type] })
      await expect(refusal).rejects.toMatchObject({ kind: 'invalid_request', details: { param: name } })
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
