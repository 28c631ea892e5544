import {
  codePoints,
  decimal,
  fieldError,
  type FieldRule,
  flag,
  integer,
  list,
  oneOf,
  text,
  type MetadataShape,
  readMetadata,
} from '../../core/validation-rules.js'
import {
  assertInputLength,
  type AudioFormat,
  requestedFormat,
  upstreamVoice,
  type VoiceTable,
} from '../../dialects/speech-formats.js'
import type { SpeechFields } from '../contract.js'

/** `<#1.50#>`: a pause, which is not spoken. */
const PAUSE = /<#[^#<>]*#>/g
const HAN = /\p{Script=Han}/gu

/** Characters as P3 counts them: a Han character is two, a pause none. */
export function billedCharacters(text: string): number {
  const spoken = text.replace(PAUSE, '')
  return codePoints(spoken) + (spoken.match(HAN)?.length ?? 0)
}

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
    ? fieldError(path, 'decimal_below_min_value', `Invalid '${path}': expected a decimal above 0, but got 0 instead.`)
    : upToMaximumVolume(value, path)

const isText = text()

/** `written/spoken`, the upstream's format. */
const pronunciation: FieldRule = (value, path) =>
  isText(value, path) ??
  (/^[^/]+\/./s.test(String(value))
    ? undefined
    : fieldError(path, 'invalid_value', `Invalid value for '${path}': expected a text of the form 'written/spoken'.`))

const percentage = integer({ minimum: -100, maximum: 100 })

/** The specification's table of P3's extra parameters, and further voice parameters of the upstream. */
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

interface P3Metadata {
  readonly voiceSetting: Readonly<Record<string, unknown>>
  readonly subtitles: boolean
  readonly outputFormat: 'hex' | 'url'
  /** Top-level members of the request that P3 takes as they are. */
  readonly others: Readonly<Record<string, unknown>>
}

/** Throws `invalid_request` with the path (`metadata.voice_setting.pitch`) of a field that must not reach P3. */
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

/** The specification has a float, the upstream requires an integer. */
function withWholePitch(voiceSetting: Record<string, unknown>): Record<string, unknown> {
  const { pitch } = voiceSetting
  // Adding 0 turns -0 into 0.
  return typeof pitch === 'number' ? { ...voiceSetting, pitch: Math.round(pitch) + 0 } : voiceSetting
}

/** The six standard voices of the specification, mapped to P3's system voices. */
export const P3_VOICES = {
  alloy: 'English_expressive_narrator',
  echo: 'male-qn-jingying',
  fable: 'female-tianmei',
  onyx: 'audiobook_male_1',
  nova: 'female-shaonv',
  shimmer: 'female-yujie',
} as const satisfies Readonly<Record<string, string>>

const MAXIMUM_INPUT_CHARACTERS = 10_000
const MINIMUM_SPEED = 0.5
const MAXIMUM_SPEED = 2

/** pcm is 24 kHz, 16-bit, mono from every provider; upstream's own default is 32 kHz. */
const PCM_SETTING = { format: 'pcm', sample_rate: 24_000, channel: 1 }

/** A request to P3, and the kind of its response. */
export interface P3Request {
  readonly body: Buffer
  /** An event stream with hexadecimal audio; otherwise one JSON object. */
  readonly streamed: boolean
  /** The JSON object holds a link instead of audio. */
  readonly linked: boolean
  /** Format of the bytes P3 makes. */
  readonly format: AudioFormat
  /** Format the caller receives. */
  readonly sentAs: AudioFormat
  readonly fallback?: AudioFormat
}

/** The channel's name of the model, and its options. */
interface P3ChannelSettings {
  readonly upstreamModel: string
  readonly options: Readonly<Record<string, unknown>>
}

/** P3's request for a speech. Throws `invalid_request` for what P3 cannot honour. */
export function p3Request(fields: SpeechFields, { upstreamModel, options }: P3ChannelSettings): P3Request {
  assertInputLength(fields.input, MAXIMUM_INPUT_CHARACTERS)
  const { voiceSetting, subtitles, outputFormat, others } = readP3Metadata(fields.metadata)
  const formats = formatsFor(fields.response_format)
  // The configuration has checked it.
  const voiceId = upstreamVoice(fields.voice, P3_VOICES, options['voices'] as VoiceTable | undefined)
  // Subtitles and links come at the end of a plain answer; everything else is streamed, for raw audio as well.
  const streamed = !subtitles && outputFormat === 'hex'
  const request = {
    model: upstreamModel,
    text: fields.input,
    stream: streamed,
    ...(streamed ? { stream_options: { exclude_aggregated_audio: true } } : {}),
    voice_setting: { ...speedOf(fields.speed), ...voiceSetting, voice_id: voiceId },
    audio_setting: formats.format === 'pcm' ? PCM_SETTING : { format: formats.format },
    ...others,
    ...(subtitles ? { subtitle_enable: true } : {}),
    output_format: outputFormat,
  }
  const body = Buffer.from(JSON.stringify(request))
  return { body, streamed, linked: outputFormat === 'url', ...formats }
}

/** wav cannot be streamed by P3, so that its header is written here; aac has no form at P3 at all. */
function formatsFor(asked: string | null | undefined): Pick<P3Request, 'format' | 'sentAs' | 'fallback'> {
  const wanted = requestedFormat(asked)
  if (wanted === 'wav') return { format: 'pcm', sentAs: 'wav' }
  if (wanted === 'aac') return { format: 'mp3', sentAs: 'mp3', fallback: 'mp3' }
  return { format: wanted, sentAs: wanted }
}

/** The specification allows more speeds than P3: the nearest one is used. */
const speedOf = (speed: number | null | undefined): { readonly speed?: number } =>
  speed == null ? {} : { speed: Math.min(MAXIMUM_SPEED, Math.max(MINIMUM_SPEED, speed)) }
