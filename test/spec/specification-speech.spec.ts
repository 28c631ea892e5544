import { describe, expect, it } from '@jest/globals'
import { GatewayError } from '../../src/core/gateway-error.js'
import { AUDIO_FORMATS } from '../../src/dialects/audio-formats.js'
import { p2Format } from '../../src/providers/p2/p2-formats.table.js'
import { p2Voice } from '../../src/providers/p2/p2-voices.table.js'
import { readP3Metadata } from '../../src/providers/p3/p3-metadata.js'
import { P3_VOICES } from '../../src/providers/p3/p3-voices.table.js'
import { lineAfter, listOf, tableOf } from '../support/specification.js'

const SPEECH = 'Speech request'

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
