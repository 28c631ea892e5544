import { Injectable, mixin, type PipeTransform, type Type } from '@nestjs/common'
import { iso6393 } from 'iso-639-3'
import { CLASS_FORMATS, type ModelClass } from '../config/model-classes.js'
import { ConfigStore } from '../config/config-store.js'
import { DtoCheck, Field } from '../core/dto.js'
import type { BodyLimitSetting } from '../core/endpoint.js'
import { GatewayError, quoted } from '../core/errors.js'
import { TEXT } from '../core/json-schema.js'
import { contextOf } from '../core/request-context.js'
import { type MultipartField, SPOOL_MEMORY_BYTES, type UploadedFile } from '../core/spooled-file.js'
import {
  anything,
  decimalOf,
  fieldError,
  named,
  oneOf,
  required,
  shown,
  text,
  whenGiven,
} from '../core/validation-rules.js'
import { type Exchange, HttpExchange } from '../server/json-request.js'
import { boundaryOf } from '../server/multipart-parser.js'
import {
  type MultipartUpload,
  namedFields,
  receiveMultipart,
  releaseWhenDone,
  timedReception,
  UPLOAD_TIMEOUT_MS,
} from '../server/multipart.js'
import { continueIfAsked, reserveMemory } from '../server/read-body.js'

/** A received form: its file, its fields as they came, and those the specification names, checked. */
export interface AudioUpload<Dto> {
  readonly file: UploadedFile
  readonly fields: readonly MultipartField[]
  readonly named: Dto
}

function audioUploadPipe<Dto extends object>(
  dto: Type<Dto>,
  limit: BodyLimitSetting,
): Type<PipeTransform<Exchange, Promise<AudioUpload<Dto>>>> {
  @Injectable()
  class AudioUploadPipe implements PipeTransform<Exchange, Promise<AudioUpload<Dto>>> {
    private readonly check = new DtoCheck(dto)

    constructor(private readonly store: ConfigStore) {}

    async transform({ request, response }: Exchange): Promise<AudioUpload<Dto>> {
      const { [limit]: bodyBytes, audioFileBytes } = this.store.current.limits
      // The headers are checked before a waiting client gets `100 Continue`.
      boundaryOf(request, bodyBytes)
      const room = reserveMemory(request, SPOOL_MEMORY_BYTES)
      continueIfAsked(request, response)
      const upload = await timedReception(request, () =>
        receiveMultipart(request, {
          bodyBytes,
          fileBytes: audioFileBytes,
          bodyTimeoutMs: UPLOAD_TIMEOUT_MS,
          room,
        }),
      )
      releaseWhenDone(() => upload.remove(), contextOf(request), response)
      const named = this.check.assert(namedFields(upload.fields))
      return { file: fileOf(upload), fields: upload.fields, named }
    }
  }
  return mixin(AudioUploadPipe)
}

/** Parameter decorator for a multipart body with one audio file, which is deleted at the end of the response. */
export function AudioUploadRequest(
  { bodyLimit }: { readonly bodyLimit: BodyLimitSetting },
  dto: Type<object>,
): ParameterDecorator {
  return HttpExchange(audioUploadPipe(dto, bodyLimit))
}

function fileOf({ file }: MultipartUpload): UploadedFile {
  if (file !== undefined) return file
  throw new GatewayError('invalid_request', "Missing required parameter: 'file'.", {
    param: 'file',
    code: 'missing_required_parameter',
  })
}

/** Withdrawn from ISO 639-1, but the only code by which Whisper models know Javanese. */
const WHISPER_JAVANESE = 'jw'

const CODES: ReadonlySet<string> = new Set([
  ...iso6393.flatMap(({ iso6391, iso6393: threeLetters }) => (iso6391 ? [iso6391, threeLetters] : [threeLetters])),
  WHISPER_JAVANESE,
])

/** Whether the value is a code of ISO 639-1 (two letters) or ISO 639-3 (three letters), in either case. */
export function isLanguageCode(value: string): boolean {
  return CODES.has(value.toLowerCase())
}

const RESPONSE_FORMATS: readonly string[] = [...new Set(Object.values(CLASS_FORMATS).flat())]

export const DEFAULT_RESPONSE_FORMAT = 'json'

/** Throws `unsupported_value` for a format that the model's class does not support. */
export function assertFormat(format: string, model: string, modelClass: ModelClass): void {
  const allowed: readonly string[] =
    modelClass in CLASS_FORMATS ? CLASS_FORMATS[modelClass as keyof typeof CLASS_FORMATS] : []
  if (allowed.includes(format)) return
  const suggestions = allowed.map((name) => `'${name}'`).join(' or ')
  throw new GatewayError(
    'invalid_request',
    `response_format ${quoted(format)} is not compatible with model ${quoted(model)}. Use ${suggestions} instead.`,
    { param: 'response_format', code: 'unsupported_value' },
  )
}

/** Form fields are text; the specification's range is checked on their number. */
const temperature = shown({ type: 'number', minimum: 0, maximum: 1 }, (value, path) => {
  const number = decimalOf(value)
  if (Number.isNaN(number)) {
    return fieldError(path, 'invalid_type', `Invalid type for '${path}': expected a decimal.`)
  }
  if (number < 0) {
    return fieldError(
      path,
      'decimal_below_min_value',
      `Invalid '${path}': decimal below minimum value. Expected a value >= 0.`,
    )
  }
  return number <= 1
    ? undefined
    : fieldError(
        path,
        'decimal_above_max_value',
        `Invalid '${path}': decimal above maximum value. Expected a value <= 1.`,
      )
})

/** Which codes there are, no pattern can say. */
const language = shown({ ...TEXT, pattern: '^[A-Za-z]{2,3}$' }, (value, path) =>
  typeof value === 'string' && isLanguageCode(value)
    ? undefined
    : fieldError(
        path,
        'invalid_language_format',
        `Invalid '${path}': the language must be an ISO 639-1 or ISO 639-3 code such as 'en' or 'eng'.`,
      ),
)

const booleanText = shown({ type: 'boolean' }, (value, path) =>
  value === 'true' || value === 'false'
    ? undefined
    : fieldError(path, 'invalid_type', `Invalid type for '${path}': expected 'true' or 'false'.`),
)

const responseFormat = whenGiven(
  named('TranscriptFormat', 'Format of a transcript', oneOf(RESPONSE_FORMATS, 'unsupported_value')),
)

const fileDocumentation = {
  type: 'string',
  format: 'binary',
  description: 'mp3, mp4, mpeg, mpga, m4a, wav, webm, ogg, flac; at most 25 MB',
} as const

/** The specification's translation request; all other fields are relayed in their order. */
export class TranslationRequestDto {
  /** Arrives as a file part; what is wrong with it is found out where its bytes are. */
  @Field(anything, fileDocumentation, true)
  readonly file!: unknown

  @Field(whenGiven(text({ allowBlank: false })), { description: 'STT model identifier', default: 'whisper-1' })
  readonly model?: string

  @Field(whenGiven(text()), { description: 'Context hint' })
  readonly prompt?: string

  @Field(responseFormat, {
    description: 'Which of them a model has depends on its class',
    default: DEFAULT_RESPONSE_FORMAT,
  })
  readonly response_format?: string

  @Field(whenGiven(temperature), { description: 'Sampling temperature' })
  readonly temperature?: string
}

/** The specification's transcription request; all other fields are relayed in their order. */
export class TranscriptionRequestDto {
  /** Arrives as a file part; what is wrong with it is found out where its bytes are. */
  @Field(anything, fileDocumentation, true)
  readonly file!: unknown

  @Field(required(text({ allowBlank: false })), {
    description: 'STT model identifier',
    example: 'whisper-1',
  })
  readonly model!: string

  @Field(whenGiven(language), { description: 'ISO 639-1 or 639-3 code', example: 'en' })
  readonly language?: string

  @Field(whenGiven(text()), { description: 'Context hint' })
  readonly prompt?: string

  @Field(responseFormat, {
    description: 'Which of them a model has depends on its class',
    default: DEFAULT_RESPONSE_FORMAT,
  })
  readonly response_format?: string

  @Field(whenGiven(temperature), { description: 'Sampling temperature' })
  readonly temperature?: string

  @Field(whenGiven(booleanText), { default: false, description: 'Events; ignored by class S' })
  readonly stream?: string
}
