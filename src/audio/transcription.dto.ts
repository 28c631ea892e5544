import { decimalOf } from '../core/decimal-text.js'
import { Field } from '../core/field.decorator.js'
import { fault, type FieldRule, oneOf, optional, required, text } from '../core/validation-rules.js'
import { isLanguageCode } from './language-codes.js'
import { RESPONSE_FORMATS } from './response-formats.js'

/** Form fields are text; the specification's range is checked on the number they spell. */
const temperature: FieldRule = (value, path) => {
  const number = decimalOf(value)
  if (Number.isNaN(number)) {
    return fault(path, 'invalid_type', `Invalid type for '${path}': expected a decimal.`)
  }
  if (number < 0) {
    return fault(
      path,
      'decimal_below_min_value',
      `Invalid '${path}': decimal below minimum value. Expected a value >= 0.`,
    )
  }
  return number <= 1
    ? undefined
    : fault(path, 'decimal_above_max_value', `Invalid '${path}': decimal above maximum value. Expected a value <= 1.`)
}

const language: FieldRule = (value, path) =>
  typeof value === 'string' && isLanguageCode(value)
    ? undefined
    : fault(
        path,
        'invalid_language_format',
        `Invalid '${path}': the language must be an ISO 639-1 or ISO 639-3 code such as 'en' or 'eng'.`,
      )

const booleanText: FieldRule = (value, path) =>
  value === 'true' || value === 'false'
    ? undefined
    : fault(path, 'invalid_type', `Invalid type for '${path}': expected 'true' or 'false'.`)

const responseFormat = optional(oneOf(RESPONSE_FORMATS, 'unsupported_value'))

const fileDocumentation = {
  type: 'string',
  format: 'binary',
  description: 'mp3, mp4, mpeg, mpga, m4a, wav, webm, ogg, flac; at most 25 MB',
} as const
const anything: FieldRule = () => undefined

/** The specification's translation request; other upstream fields travel on in their order. */
export class TranslationRequestDto {
  /** Arrives as a file part; what is wrong with it is found out where its bytes are. */
  @Field(anything, fileDocumentation)
  readonly file!: unknown

  @Field(optional(text({ allowBlank: false })), { type: 'string', default: 'whisper-1' })
  readonly model?: string

  @Field(optional(text()), { type: 'string', description: 'Context hint' })
  readonly prompt?: string

  @Field(responseFormat, { enum: RESPONSE_FORMATS, default: 'json' })
  readonly response_format?: string

  @Field(optional(temperature), { type: 'number', minimum: 0, maximum: 1 })
  readonly temperature?: string
}

/** The specification's transcription request; other upstream fields travel on in their order. */
export class TranscriptionRequestDto {
  /** Arrives as a file part; what is wrong with it is found out where its bytes are. */
  @Field(anything, fileDocumentation)
  readonly file!: unknown

  @Field(required(text({ allowBlank: false })), {
    type: 'string',
    description: 'STT model identifier',
    example: 'whisper-1',
  })
  readonly model!: string

  @Field(optional(language), { type: 'string', description: 'ISO 639-1 or 639-3 code', example: 'en' })
  readonly language?: string

  @Field(optional(text()), { type: 'string', description: 'Context hint' })
  readonly prompt?: string

  @Field(responseFormat, { enum: RESPONSE_FORMATS, default: 'json' })
  readonly response_format?: string

  @Field(optional(temperature), { type: 'number', minimum: 0, maximum: 1 })
  readonly temperature?: string

  @Field(optional(booleanText), { type: 'boolean', default: false, description: 'Events; ignored by class S' })
  readonly stream?: string
}
