import { describe, expect, it } from '@jest/globals'
import { GatewayError } from '../../core/gateway-error.js'
import { readP3Metadata } from './p3-metadata.js'

function refusal(metadata: Record<string, unknown>): { readonly param: unknown; readonly code: unknown } {
  try {
    readP3Metadata(metadata)
  } catch (error) {
    if (error instanceof GatewayError && error.kind === 'invalid_request') {
      return { param: error.details.param, code: error.details.code }
    }
    throw error
  }
  throw new Error('nothing was refused')
}

const voice = (voice_setting: object): Record<string, unknown> => ({ voice_setting })

describe('the metadata for P3', () => {
  it.each([undefined, null, {}, { voice_setting: null, language_boost: null, subtitle_enable: null }])(
    'asks for nothing in %j',
    (metadata) => {
      expect(readP3Metadata(metadata)).toEqual({ voiceSetting: {}, subtitles: false, outputFormat: 'hex', others: {} })
    },
  )

  it('holds the specification’s table, and what else upstream shapes a voice with', () => {
    const voice_setting = { speed: 0.5, vol: 0.1, emotion: 'happy', text_normalization: true, latex_read: false }
    const others = {
      language_boost: 'Chinese,Yue',
      pronunciation_dict: { tone: ['omg/oh my god'] },
      voice_modify: { pitch: -100, intensity: 100, timbre: 0, sound_effects: 'robotic' },
      aigc_watermark: true,
    }
    expect(readP3Metadata({ voice_setting, ...others, subtitle_enable: true, output_format: 'url' })).toEqual({
      voiceSetting: voice_setting,
      subtitles: true,
      outputFormat: 'url',
      others,
    })
  })

  it.each([
    [1.4, 1],
    [1.5, 2],
    [-11.6, -12],
    [-0.2, 0],
    [12, 12],
  ])('rounds the pitch %s, a float here, to the integer %s that upstream wants', (pitch, rounded) => {
    expect(readP3Metadata(voice({ pitch })).voiceSetting).toStrictEqual({ pitch: rounded })
  })

  it.each([
    [voice({ speed: 0.49 }), 'voice_setting.speed', 'decimal_below_min_value'],
    [voice({ speed: 2.01 }), 'voice_setting.speed', 'decimal_above_max_value'],
    [voice({ speed: '1' }), 'voice_setting.speed', 'invalid_type'],
    [voice({ vol: 0 }), 'voice_setting.vol', 'decimal_below_min_value'],
    [voice({ vol: -0 }), 'voice_setting.vol', 'decimal_below_min_value'],
    [voice({ vol: -1 }), 'voice_setting.vol', 'decimal_below_min_value'],
    [voice({ vol: 10.01 }), 'voice_setting.vol', 'decimal_above_max_value'],
    [voice({ pitch: 12.1 }), 'voice_setting.pitch', 'decimal_above_max_value'],
    [voice({ pitch: -13 }), 'voice_setting.pitch', 'decimal_below_min_value'],
    [voice({ emotion: 'bored' }), 'voice_setting.emotion', 'invalid_value'],
    [voice({ emotion: 7 }), 'voice_setting.emotion', 'invalid_type'],
    [voice({ text_normalization: 1 }), 'voice_setting.text_normalization', 'invalid_type'],
    [{ voice_setting: [] }, 'voice_setting', 'invalid_type'],
    [{ language_boost: 'Klingon' }, 'language_boost', 'invalid_value'],
    [{ subtitle_enable: 'yes' }, 'subtitle_enable', 'invalid_type'],
    [{ output_format: 'mp3' }, 'output_format', 'invalid_value'],
    [{ pronunciation_dict: { tone: 'a/b' } }, 'pronunciation_dict.tone', 'invalid_type'],
    [{ pronunciation_dict: { tone: ['a/b', 7] } }, 'pronunciation_dict.tone[1]', 'invalid_type'],
    [{ pronunciation_dict: { tone: ['ab'] } }, 'pronunciation_dict.tone[0]', 'invalid_value'],
    [{ pronunciation_dict: { tone: ['/b'] } }, 'pronunciation_dict.tone[0]', 'invalid_value'],
    [{ voice_modify: { pitch: 101 } }, 'voice_modify.pitch', 'integer_above_max_value'],
    [{ voice_modify: { timbre: 0.5 } }, 'voice_modify.timbre', 'invalid_type'],
    [{ voice_modify: { sound_effects: 'cave' } }, 'voice_modify.sound_effects', 'invalid_value'],
  ])('is refused in %j at metadata.%s', (metadata, param, code) => {
    expect(refusal(metadata)).toEqual({ param: `metadata.${param}`, code })
  })

  it.each([
    [{ model: 'speech-01-hd' }, 'model'],
    [{ text: 'Other' }, 'text'],
    [{ stream: false }, 'stream'],
    [{ stream_options: {} }, 'stream_options'],
    [{ audio_setting: { format: 'wav' } }, 'audio_setting'],
    [{ voice: 'nova' }, 'voice'],
    [{ timbre_weights: [] }, 'timbre_weights'],
    [voice({ voice_id: 'other' }), 'voice_setting.voice_id'],
    [{ subtitle_type: 'word' }, 'subtitle_type'],
    [{ authorization: 'Bearer x' }, 'authorization'],
    [{ GroupId: '1' }, 'GroupId'],
    [{ voice_modify: { gain: 1 } }, 'voice_modify.gain'],
  ])('never touches what the request itself says or the channel is: %j', (metadata, param) => {
    expect(refusal(metadata)).toEqual({ param: `metadata.${param}`, code: 'unknown_parameter' })
  })
})
