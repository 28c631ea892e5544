import { isObject } from '../server/json-value.js'
import { P3Rejection, rejectParameter } from './p3-errors.js'

/** Judges one value; `path` is the name the refusal carries. Throws P3Rejection 2013. */
type ValueRule = (value: unknown, path: string) => void

const boolean: ValueRule = (value, path) => {
  if (typeof value !== 'boolean') rejectParameter(`${path} must be a boolean`)
}

const string: ValueRule = (value, path) => {
  if (typeof value !== 'string') rejectParameter(`${path} must be a string`)
}

/** A number from `min` to `max`. */
function decimal(min: number, max: number): ValueRule {
  return (value, path) => {
    if (typeof value !== 'number') rejectParameter(`${path} must be a number`)
    if (value < min || value > max) rejectParameter(`${path} must be between ${min} and ${max}, got ${value}`)
  }
}

/** A number over 0 and up to `max`. */
function positive(max: number): ValueRule {
  return (value, path) => {
    decimal(0, max)(value, path)
    if (value === 0) rejectParameter(`${path} must be greater than 0`)
  }
}

function integer(min: number, max: number): ValueRule {
  return (value, path) => {
    if (!Number.isInteger(value)) rejectParameter(`${path} must be an integer`)
    decimal(min, max)(value, path)
  }
}

function oneOf(...allowed: readonly (string | number)[]): ValueRule {
  return (value, path) => {
    if (allowed.some((entry) => entry === value)) return
    rejectParameter(`${path} must be one of ${allowed.join(', ')}`)
  }
}

function nullable(rule: ValueRule): ValueRule {
  return (value, path) => {
    if (value !== null) rule(value, path)
  }
}

function list(rule: ValueRule, maxEntries = Number.POSITIVE_INFINITY): ValueRule {
  return (value, path) => {
    if (!Array.isArray(value)) rejectParameter(`${path} must be an array`)
    if (value.length > maxEntries) rejectParameter(`${path} must have at most ${maxEntries} entries`)
    value.forEach((entry: unknown, index) => {
      rule(entry, `${path}[${index}]`)
    })
  }
}

/** An object of known fields; any other field is refused and recorded as a violation. */
function fields(rules: Readonly<Record<string, ValueRule>>, required: readonly string[] = []): ValueRule {
  return (value, path) => {
    if (!isObject(value)) rejectParameter(`${path} must be an object`)
    for (const name of required) if (value[name] === undefined) rejectParameter(`${path}.${name} is required`)
    for (const [name, entry] of Object.entries(value)) {
      const field = path === '' ? name : `${path}.${name}`
      const rule = Object.hasOwn(rules, name) ? rules[name] : undefined
      if (rule === undefined) throw new P3Rejection(2013, `unknown field ${field}`, `unknown field: ${field}`)
      rule(entry, field)
    }
  }
}

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
