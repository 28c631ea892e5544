import type { FieldError } from '../core/errors.js'
import { Field } from '../core/dto.js'
import { described, TEXT } from '../core/json-schema.js'
import {
  decimal,
  fieldError,
  type FieldRule,
  flag,
  isRecord,
  list,
  missing,
  named,
  oneOf,
  optional,
  record,
  required,
  shown,
  text,
} from '../core/validation-rules.js'
import type { VideoKind } from '../providers/contract.js'
import { referenceImage } from './image-rules.js'

export const CAMERA_AXES = ['horizontal', 'vertical', 'pan', 'tilt', 'roll', 'zoom'] as const

/** Only `simple` is steered by numbers; the others are whole movements of the upstream's own. */
const STEERED = 'simple'
export const CAMERA_TYPES = [STEERED, 'down_back', 'forward_up', 'right_turn_forward', 'left_turn_forward'] as const

const MAXIMUM_CAMERA_MOVE = 10

const move = optional(decimal({ minimum: -MAXIMUM_CAMERA_MOVE, maximum: MAXIMUM_CAMERA_MOVE }))
const config = named(
  'CameraMoves',
  'How far the camera moves along each axis',
  record(Object.fromEntries(CAMERA_AXES.map((axis) => [axis, move]))),
)
const shape = named(
  'CameraControl',
  'How the camera moves; config with type simple only, where exactly one of its values is not 0',
  record({
    type: optional(named('CameraType', 'simple, or a whole movement', oneOf(CAMERA_TYPES))),
    config: optional(config),
  }),
)

/** `camera_control {type, config}` by the upstream's rules: a movement of one axis, or a named movement without numbers. */
const cameraControl = shown(shape.schema ?? {}, (value, path) => {
  const found = shape(value, path)
  if (found !== undefined || !isRecord(value)) return found
  const moves = isRecord(value['config']) ? value['config'] : undefined
  if (value['type'] === STEERED) return steeredError(moves, `${path}.config`)
  // The upstream takes an object without a type as well; what it makes of it is its own business.
  return typeof value['type'] === 'string' ? presetError(value['type'], moves, `${path}.config`) : undefined
})

function steeredError(moves: Readonly<Record<string, unknown>> | undefined, path: string): FieldError | undefined {
  if (moves === undefined) return missing(path)
  const moved = CAMERA_AXES.filter((axis) => typeof moves[axis] === 'number' && moves[axis] !== 0)
  if (moved.length === 1) return undefined
  return fieldError(path, 'invalid_value', `Invalid '${path}': exactly one of its values must not be 0.`)
}

function presetError(
  type: string,
  moves: Readonly<Record<string, unknown>> | undefined,
  path: string,
): FieldError | undefined {
  if (moves === undefined || Object.keys(moves).length === 0) return undefined
  return fieldError(path, 'invalid_value', `Invalid '${path}': it must be absent or empty when the type is '${type}'.`)
}

/** Specification: Limits. In code points. */
export const MAXIMUM_PROMPT_CHARACTERS = 2_500
export const MAXIMUM_IMAGES = 4

export const MODES = ['std', 'pro'] as const
export const ASPECT_RATIOS = ['16:9', '9:16', '1:1'] as const

/** Seconds, as the specification spells them for multi-image video. */
export const MULTI_IMAGE_DURATIONS = ['5', '10'] as const
/** Seconds; 3 to 15 are what the newest model allows, older ones refuse some of them upstream. */
export const TEXT_DURATIONS = ['3', '4', '5', '6', '7', '8', '9', '10', '11', '12', '13', '14', '15'] as const

const name = text({ allowBlank: false })

/** A name is logged and stored; a database has no text with a NUL in it. */
const modelName = shown(
  described('Model identifier, without control characters', name.schema),
  (value, path) =>
    name(value, path) ??
    (typeof value === 'string' && /\p{Cc}/u.test(value)
      ? fieldError(path, 'invalid_value', `Invalid '${path}': it must not hold control characters.`)
      : undefined),
)

const prompt = text({ allowBlank: false, maximumCharacters: MAXIMUM_PROMPT_CHARACTERS })
const negativePrompt = text({ maximumCharacters: MAXIMUM_PROMPT_CHARACTERS })

/** Seconds as a string, as the upstream has them, or as a number, as callers may. */
const duration = (title: string, allowed: readonly string[]): FieldRule => {
  const listed = allowed.map((seconds) => `'${seconds}'`).join(', ')
  const schema = {
    anyOf: [
      { title, description: 'Seconds', ...TEXT, enum: allowed },
      { title: `${title}Number`, description: 'Seconds', type: 'integer', enum: allowed.map(Number) },
    ],
  } as const
  return shown(schema, (value, path) => {
    const isAllowed = (typeof value === 'string' || typeof value === 'number') && allowed.includes(String(value))
    if (isAllowed) return undefined
    return fieldError(path, 'invalid_value', `Invalid value for '${path}'. Supported values are: ${listed}.`)
  })
}

const EXTERNAL_TASK_ID = /^[A-Za-z0-9_.:-]{1,128}$/

const anyText = text()

const externalTaskId = shown({ ...TEXT, pattern: EXTERNAL_TASK_ID.source }, (value, path) => {
  const shape = anyText(value, path)
  if (shape !== undefined || typeof value !== 'string' || EXTERNAL_TASK_ID.test(value)) return shape
  return fieldError(
    path,
    'invalid_value',
    `Invalid '${path}': expected 1 to 128 letters, digits, underscores, full stops, colons or hyphens.`,
  )
})

const imageList = list(named('ReferenceImage', 'An image to begin with', referenceImage), {
  minimumItems: 1,
  maximumItems: MAXIMUM_IMAGES,
})

/** What a create may be repeated under. */
export const IDEMPOTENCY_KEY = /^[\x20-\x7e]{1,255}$/

export interface PageParameter {
  readonly name: string
  readonly maximum: number
  readonly fallback: number
}

/** The upstream's bounds; the defaults are the design's where the specification shows none. */
export const PAGE_NUMBER: PageParameter = { name: 'pageNum', maximum: 1_000, fallback: 1 }
export const PAGE_SIZE: PageParameter = { name: 'pageSize', maximum: 500, fallback: 30 }

/** What the service reads of either kind of body; all else only passes through. */
export interface VideoFields {
  readonly model_name?: string | null
  /** How old clients name the model; only where the kind knows it. */
  readonly model?: string | null
  readonly duration?: string | number | null
  readonly callback_url?: string | null
  readonly external_task_id?: string | null
}

/** Specification: Video task (multi-image), `model_name`. */
export const MULTI_IMAGE_MODELS = ['vidgen-v1-6'] as const

/**
 * The model a call without a name is routed as. It is not written into the body: these are the defaults of the
 * specification and, where that names none (text to video), of the upstream itself.
 */
export const DEFAULT_MODELS: Readonly<Record<VideoKind, string>> = {
  'multi-image2video': 'vidgen-v1-6',
  text2video: 'vidgen-v1',
}

const multiImageModel = named('MultiImageModel', 'A model that takes several images', oneOf(MULTI_IMAGE_MODELS))
const mode = named('VideoMode', 'Quality', oneOf(MODES))
const aspectRatio = named('AspectRatio', 'Width to height', oneOf(ASPECT_RATIOS))
const watermark = named(
  'Watermark',
  'Whether a watermarked result is made as well',
  record({ enabled: optional(flag) }),
)

/** Specification: Video task (multi-image), create request fields; everything it does not list travels on. */
export class MultiImageVideoDto implements VideoFields {
  @Field(optional(multiImageModel), { description: 'Model identifier', default: 'vidgen-v1-6' })
  readonly model_name?: string | null

  @Field(required(imageList), {
    description: 'png or jpeg, at most 10 MB, both sides at least 300 pixels, ratio 1:2.5 to 2.5:1',
  })
  readonly image_list!: readonly unknown[]

  @Field(required(prompt), { description: 'What is to be seen' })
  readonly prompt!: string

  @Field(optional(negativePrompt), { description: 'What is not to be seen' })
  readonly negative_prompt?: string | null

  @Field(optional(mode), { description: 'Quality', default: 'std' })
  readonly mode?: string | null

  @Field(optional(duration('MultiImageVideoSeconds', MULTI_IMAGE_DURATIONS)), {
    description: 'Seconds; a number is accepted as well',
    default: '5',
  })
  readonly duration?: string | number | null

  @Field(optional(aspectRatio), { description: 'Width to height', default: '16:9' })
  readonly aspect_ratio?: string | null

  @Field(optional(watermark), {
    description: 'With true a watermarked result is made as well',
  })
  readonly watermark_info?: Readonly<Record<string, unknown>> | null

  @Field(optional(text({ allowBlank: false })), { format: 'uri', description: 'Status changes are pushed here' })
  readonly callback_url?: string | null

  @Field(optional(externalTaskId), {
    description: 'An id of your own, unique among your tasks; 1 to 128 of A-Z a-z 0-9 _ . : -',
  })
  readonly external_task_id?: string | null
}

/** What is read after the check: of the images only the bytes stay in memory. */
export const withoutImages = (fields: MultiImageVideoDto): MultiImageVideoDto =>
  Object.assign({}, fields, { image_list: [] })

/** Specification: Video task (text-to-video); other parameters follow the upstream interface unchanged. */
export class TextVideoDto implements VideoFields {
  @Field(optional(modelName), { example: 'vidgen-v1-6' })
  readonly model_name?: string | null

  @Field(optional(modelName), {
    description: 'Taken for model_name where that is missing, as old clients send it',
  })
  readonly model?: string | null

  @Field(required(prompt), { description: 'What is to be seen' })
  readonly prompt!: string

  @Field(optional(negativePrompt), { description: 'What is not to be seen' })
  readonly negative_prompt?: string | null

  @Field(optional(decimal({ minimum: 0, maximum: 1 })), { description: 'How closely the prompt is followed' })
  readonly cfg_scale?: number | null

  @Field(optional(mode), { description: 'Quality' })
  readonly mode?: string | null

  @Field(optional(cameraControl), {
    description: 'Movement of the camera',
  })
  readonly camera_control?: Readonly<Record<string, unknown>> | null

  @Field(optional(aspectRatio), { description: 'Width to height' })
  readonly aspect_ratio?: string | null

  @Field(optional(duration('TextVideoSeconds', TEXT_DURATIONS)), {
    description: 'Seconds; a number is accepted as well',
  })
  readonly duration?: string | number | null

  @Field(optional(watermark), {
    description: 'With true a watermarked result is made as well',
  })
  readonly watermark_info?: Readonly<Record<string, unknown>> | null

  @Field(optional(text({ allowBlank: false })), { format: 'uri', description: 'Status changes are pushed here' })
  readonly callback_url?: string | null

  @Field(optional(externalTaskId), {
    description: 'An id of your own, unique among your tasks; 1 to 128 of A-Z a-z 0-9 _ . : -',
  })
  readonly external_task_id?: string | null
}
