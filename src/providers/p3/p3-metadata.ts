import { type MetadataShape, readMetadata } from '../../core/dto.js'
import { decimal, fault, type FieldRule, flag, integer, list, oneOf, text } from '../../core/validation-rules.js'

const EMOTIONS = [
  'happy',
  'sad',
  'angry',
  'fearful',
  'disgusted',
  'surprised',
  'calm',
  'neutral',
  // Newer models only; the upstream refuses them for older ones.
  'fluent',
  'whisper',
] as const

const LANGUAGES = [
  'Chinese',
  'Chinese,Yue',
  'English',
  'Arabic',
  'Russian',
  'Spanish',
  'French',
  'Portuguese',
  'German',
  'Turkish',
  'Dutch',
  'Ukrainian',
  'Vietnamese',
  'Indonesian',
  'Japanese',
  'Italian',
  'Korean',
  'Thai',
  'Polish',
  'Romanian',
  'Greek',
  'Czech',
  'Finnish',
  'Hindi',
  'Bulgarian',
  'Danish',
  'Hebrew',
  'Malay',
  'Persian',
  'Slovak',
  'Swedish',
  'Croatian',
  'Filipino',
  'Hungarian',
  'Norwegian',
  'Slovenian',
  'Catalan',
  'Nynorsk',
  'Tamil',
  'Afrikaans',
  'auto',
] as const

const SOUND_EFFECTS = ['spacious_echo', 'auditorium_echo', 'lofi_telephone', 'robotic'] as const

const MAXIMUM_VOLUME = 10
const upToMaximumVolume = decimal({ minimum: 0, maximum: MAXIMUM_VOLUME })

const volume: FieldRule = (value, path) =>
  value === 0
    ? fault(path, 'decimal_below_min_value', `Invalid '${path}': expected a decimal above 0, but got 0 instead.`)
    : upToMaximumVolume(value, path)

const isText = text()

/** `written/spoken`, as upstream wants it. */
const pronunciation: FieldRule = (value, path) =>
  isText(value, path) ??
  (/^[^/]+\/./s.test(String(value))
    ? undefined
    : fault(path, 'invalid_value', `Invalid value for '${path}': expected a text of the form 'written/spoken'.`))

const percentage = integer({ minimum: -100, maximum: 100 })

/** The specification's table of P3's extra parameters, and what else upstream shapes a voice with. */
const SHAPE = {
  voice_setting: {
    speed: decimal({ minimum: 0.5, maximum: 2 }),
    vol: volume,
    pitch: decimal({ minimum: -12, maximum: 12 }),
    emotion: oneOf(EMOTIONS),
    text_normalization: flag,
    latex_read: flag,
  },
  language_boost: oneOf(LANGUAGES),
  subtitle_enable: flag,
  output_format: oneOf(['hex', 'url']),
  pronunciation_dict: { tone: list(pronunciation) },
  voice_modify: { pitch: percentage, intensity: percentage, timbre: percentage, sound_effects: oneOf(SOUND_EFFECTS) },
  aigc_watermark: flag,
} as const satisfies MetadataShape

export interface P3Metadata {
  readonly voiceSetting: Readonly<Record<string, unknown>>
  readonly subtitles: boolean
  readonly outputFormat: 'hex' | 'url'
  /** Top-level members of the request that P3 takes as they are. */
  readonly others: Readonly<Record<string, unknown>>
}

/** Throws `invalid_request` with the path (`metadata.voice_setting.pitch`) of whatever P3 is not to be told. */
export function readP3Metadata(metadata: Readonly<Record<string, unknown>> | null | undefined): P3Metadata {
  const {
    voice_setting: voiceSetting = {},
    subtitle_enable: subtitles = false,
    output_format: outputFormat = 'hex',
    ...others
  } = readMetadata(metadata, SHAPE)
  return {
    voiceSetting: withWholePitch(voiceSetting as Record<string, unknown>),
    subtitles: subtitles === true,
    outputFormat: outputFormat === 'url' ? 'url' : 'hex',
    others,
  }
}

/** The specification says float, upstream wants an integer. */
function withWholePitch(voiceSetting: Record<string, unknown>): Record<string, unknown> {
  const { pitch } = voiceSetting
  // Adding 0 turns -0 into 0.
  return typeof pitch === 'number' ? { ...voiceSetting, pitch: Math.round(pitch) + 0 } : voiceSetting
}
