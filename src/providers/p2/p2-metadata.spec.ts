import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { GatewayError } from '../../core/gateway-error.js'
import { readP2Metadata } from './p2-metadata.js'

const AUDIO = {
  rate: 16000,
  bitrate: 64,
  speed_ratio: 1.2,
  loudness_ratio: 0.5,
  emotion: 'happy',
  enable_emotion: true,
  emotion_scale: 5,
  explicit_language: 'pt-br',
  context_language: 'es',
}
const REQUEST = {
  text_type: 'ssml',
  silence_duration: 30_000,
  enable_trailing_silence_audio: true,
  with_timestamp: 1,
}
const EXTRA = {
  disable_markdown_filter: true,
  mute_cut_threshold: '400',
  unsupported_char_ratio_thresh: 1,
  cache_config: { text_type: 1, use_cache: true },
}
const NOWHERE: readonly (readonly [string, string])[] = [
  ['app', 'appid'],
  ['app', 'token'],
  ['app', 'cluster'],
  ['user', 'uid'],
  ['audio', 'encoding'],
  ['audio', 'voice_type'],
  ['audio', 'pitch_ratio'],
  ['request', 'reqid'],
  ['request', 'text'],
  ['request', 'operation'],
  ['request', 'model'],
  ['request', 'frontend'],
]

function refusal(metadata: Record<string, unknown>, terms?: { pcm: boolean }): GatewayError {
  try {
    readP2Metadata(metadata, terms)
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
  throw new Error('nothing was refused')
}

describe('the metadata of P2', () => {
  it.each([undefined, null, {}, { audio: null }, { audio: {}, request: { text_type: null } }])(
    'is an empty overlay for %j',
    (metadata) => {
      expect(readP2Metadata(metadata)).toEqual({ audio: {}, request: {} })
    },
  )

  it('may hold all that the upstream takes from a caller', () => {
    expect(readP2Metadata({ audio: AUDIO, request: REQUEST })).toEqual({ audio: AUDIO, request: REQUEST })
  })

  it.each([
    ['an object', EXTRA],
    ['JSON text', JSON.stringify(EXTRA)],
  ])('hands extra parameters on as JSON text when they come as %s', (_, extra) => {
    const { request } = readP2Metadata({ request: { extra_param: extra } })
    expect(JSON.parse(String(request['extra_param']))).toEqual(EXTRA)
  })

  it.each(NOWHERE)('refuses %s.%s, whatever its value', (group, name) => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const { kind, details } = refusal({ [group]: { [name]: value } })
        const isKnownGroup = group === 'audio' || group === 'request'
        expect({ kind, ...details }).toEqual({
          kind: 'invalid_request',
          param: isKnownGroup ? `metadata.${group}.${name}` : `metadata.${group}`,
          code: 'unknown_parameter',
        })
      }),
      { numRuns: 20 },
    )
  })

  it.each([
    ['audio.rate', 44100],
    ['audio.rate', '16000'],
    ['audio.bitrate', 0],
    ['audio.bitrate', 64.5],
    ['audio.speed_ratio', 0.05],
    ['audio.speed_ratio', 2.1],
    ['audio.loudness_ratio', 0.4],
    ['audio.loudness_ratio', 2.1],
    ['audio.emotion', ''],
    ['audio.emotion', 7],
    ['audio.emotion', 'x'.repeat(65)],
    ['audio.enable_emotion', 'true'],
    ['audio.emotion_scale', 0],
    ['audio.emotion_scale', 5.5],
    ['audio.explicit_language', 'xx'],
    ['audio.context_language', 'en'],
    ['request.text_type', 'html'],
    ['request.silence_duration', -1],
    ['request.silence_duration', 30_001],
    ['request.enable_trailing_silence_audio', 1],
    ['request.with_timestamp', true],
    ['request.with_timestamp', 2],
    ['request.extra_param', 'not JSON'],
    ['request.extra_param', '[]'],
    ['request.extra_param', 7],
    ['request.extra_param.other', 7],
    ['request.extra_param.aigc_watermark', 'yes'],
    ['request.extra_param.unsupported_char_ratio_thresh', 1.1],
    ['request.extra_param.cache_config.text_type', 2],
    ['request.extra_param.cache_config.key', 'x'],
  ])('refuses %s = %j and names it', (path, value) => {
    const metadata = path.split('.').reduceRight<unknown>((inner, name) => ({ [name]: inner }), value)
    const { kind, message, details } = refusal(metadata as Record<string, unknown>)
    expect(kind).toBe('invalid_request')
    expect(details.param).toBe(`metadata.${path}`)
    expect(message).toContain(`metadata.${path}`)
  })

  it('names an unknown parameter within the JSON text of extra parameters', () => {
    const { details } = refusal({ request: { extra_param: '{"__proto__":{"text":"other"}}' } })
    expect(details).toEqual({ param: 'metadata.request.extra_param.__proto__', code: 'unknown_parameter' })
  })

  it('takes no rate but 24 kHz for pcm and wav', () => {
    expect(readP2Metadata({ audio: { rate: 24000 } }, { pcm: true }).audio).toEqual({ rate: 24000 })
    for (const rate of [8000, 16000]) {
      expect(refusal({ audio: { rate } }, { pcm: true }).details.param).toBe('metadata.audio.rate')
      expect(readP2Metadata({ audio: { rate } }, { pcm: false }).audio).toEqual({ rate })
    }
  })

  it('is refused or read, whatever it holds, and read it names nothing else', () => {
    const anything = fc.jsonValue()
    const near = fc.record(
      {
        audio: fc.record({ rate: anything, emotion: anything, bitrate: fc.nat(400) }, { requiredKeys: [] }),
        request: fc.record({ extra_param: anything, text_type: anything }, { requiredKeys: [] }),
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(fc.oneof(near, fc.dictionary(fc.string(), anything)), (metadata) => {
        try {
          const { audio, request } = readP2Metadata(metadata)
          for (const name of Object.keys(audio)) expect(Object.keys(AUDIO)).toContain(name)
          for (const name of Object.keys(request)) expect([...Object.keys(REQUEST), 'extra_param']).toContain(name)
        } catch (error) {
          if (!(error instanceof GatewayError)) throw error
          expect(error.message.length).toBeLessThan(512)
        }
      }),
      { numRuns: 1000 },
    )
  })
})
