import { describe, expect, it } from '@jest/globals'
import { faultOfFieldName, safeFileName } from './upload-names.js'

const NONE: ReadonlySet<string> = new Set()

describe('safeFileName', () => {
  it.each([
    ['a.wav', 'a.wav'],
    ['/etc/passwd.mp3', 'passwd.mp3'],
    ['Assets\\speech\\a.mp3', 'a.mp3'],
    ['../../a.wav', 'a.wav'],
    ['a%0D%0AX-Evil: 1.wav', 'aX-Evil: 1.wav'],
    ['a\r\n\u0000b.wav', 'ab.wav'],
    ['gpj.\u202Evaw', 'gpj.vaw'],
    ['Über uns 🎙.flac', 'Über uns 🎙.flac'],
    ['%0d%0a', ''],
    ['dir/', ''],
  ])('makes %j into %j', (raw, safe) => {
    expect(safeFileName(raw)).toBe(safe)
  })

  it('cuts a long name to 200 characters and keeps its extension', () => {
    expect(safeFileName(`${'é'.repeat(5000)}.flac`)).toBe(`${'é'.repeat(195)}.flac`)
    expect(safeFileName('🎙'.repeat(5000))).toBe('🎙'.repeat(200))
  })
})

describe('faultOfFieldName', () => {
  it.each(['include[]', 'chunking_strategy[type]', 'model', 'known_speaker_names[0]', 'modelling[x]', 'x'.repeat(100)])(
    'accepts %s',
    (name) => {
      expect(faultOfFieldName(name, NONE)).toBeUndefined()
    },
  )

  it.each([
    'file',
    'file[]',
    'model[]',
    'model[0]',
    '__proto__',
    'a[__proto__]',
    'a[b][constructor]',
    'prototype[x]',
    'é'.repeat(51),
  ])('refuses %s and names it', (name) => {
    expect(faultOfFieldName(name, NONE)).toMatchObject({ kind: 'invalid_request', details: { param: name } })
  })

  it('lets only names ending in [] come again', () => {
    expect(faultOfFieldName('include[]', new Set(['include[]']))).toBeUndefined()
    expect(faultOfFieldName('model', new Set(['model']))?.details.param).toBe('model')
    expect(faultOfFieldName('a[b]', new Set(['a[b]']))?.details.param).toBe('a[b]')
  })
})
