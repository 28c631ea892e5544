import { rejectParameter } from './p3-rejection.js'
import {
  boolean,
  decimal,
  fields,
  integer,
  list,
  nullable,
  oneOf,
  positive,
  string,
  type ValueRule,
} from './p3-value-rules.js'

/** The emotions of the newest models alone. */
export const NEWER_EMOTIONS = ['fluent', 'whisper']
/** `neutral` is what older documents call `calm`. */
const EMOTIONS = ['happy', 'sad', 'angry', 'fearful', 'disgusted', 'surprised', 'calm', 'neutral', ...NEWER_EMOTIONS]

export const LANGUAGES = [
  ...['Chinese', 'Chinese,Yue', 'English', 'Arabic', 'Russian', 'Spanish', 'French', 'Portuguese', 'German'],
  ...['Turkish', 'Dutch', 'Ukrainian', 'Vietnamese', 'Indonesian', 'Japanese', 'Italian', 'Korean', 'Thai', 'Polish'],
  ...['Romanian', 'Greek', 'Czech', 'Finnish', 'Hindi', 'Bulgarian', 'Danish', 'Hebrew', 'Malay', 'Persian', 'Slovak'],
  ...['Swedish', 'Croatian', 'Filipino', 'Hungarian', 'Norwegian', 'Slovenian', 'Catalan', 'Nynorsk', 'Tamil'],
  ...['Afrikaans', 'auto'],
]

const VOICE_SETTING: Readonly<Record<string, ValueRule>> = {
  voice_id: string,
  speed: decimal(0.5, 2),
  vol: positive(10),
  pitch: integer(-12, 12),
  emotion: oneOf(...EMOTIONS),
  text_normalization: boolean,
  english_normalization: boolean,
  latex_read: boolean,
}

const AUDIO_SETTING: Readonly<Record<string, ValueRule>> = {
  sample_rate: oneOf(8000, 16_000, 22_050, 24_000, 32_000, 44_100),
  bitrate: oneOf(32_000, 64_000, 128_000, 256_000),
  // Which formats there are depends on how the simulator was started.
  format: string,
  channel: oneOf(1, 2),
  force_cbr: boolean,
}

const VOICE_MODIFY: Readonly<Record<string, ValueRule>> = {
  pitch: integer(-100, 100),
  intensity: integer(-100, 100),
  timbre: integer(-100, 100),
  sound_effects: oneOf('spacious_echo', 'auditorium_echo', 'lofi_telephone', 'robotic'),
}

const TIMBRE_WEIGHTS = list(fields({ voice_id: string, weight: integer(1, 100) }, ['voice_id', 'weight']), 4)

/** The request table of section 2 of the notes, field by field; what depends on several fields is judged afterwards. */
export const REQUEST_FIELDS: ValueRule = fields({
  model: string,
  text: string,
  stream: boolean,
  stream_options: fields({ exclude_aggregated_audio: boolean }),
  voice_setting: fields(VOICE_SETTING),
  audio_setting: fields(AUDIO_SETTING),
  pronunciation_dict: fields({ tone: list(tone) }),
  timbre_weights: TIMBRE_WEIGHTS,
  // The upstream's own documents spell it both ways.
  timber_weights: TIMBRE_WEIGHTS,
  language_boost: nullable(oneOf(...LANGUAGES)),
  voice_modify: fields(VOICE_MODIFY),
  subtitle_enable: boolean,
  subtitle_type: oneOf('sentence', 'word', 'word_streaming'),
  output_format: string,
  aigc_watermark: boolean,
})

function tone(value: unknown, path: string): void {
  if (typeof value === 'string' && /^[^/]+\/.+$/.test(value)) return
  rejectParameter(`${path} must look like written/spoken`)
}
