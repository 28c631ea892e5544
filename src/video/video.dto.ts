import type { FieldError } from '../core/errors.js'
import { Field } from '../core/dto.js'
import {
  decimal,
  fieldError,
  type FieldRule,
  flag,
  isRecord,
  list,
  missing,
  oneOf,
  optional,
  record,
  required,
  text,
} from '../core/validation-rules.js'
import type { VideoKind } from '../providers/contract.js'
import { image } from './image-rules.js'

export const CAMERA_AXES = ['horizontal', 'vertical', 'pan', 'tilt', 'roll', 'zoom'] as const

/** Only `simple` is steered by numbers; the others are whole movements of the upstream's own. */
const STEERED = 'simple'
export const CAMERA_TYPES = [STEERED, 'down_back', 'forward_up', 'right_turn_forward', 'left_turn_forward'] as const

const MAXIMUM_CAMERA_MOVE = 10

const move = optional(decimal({ minimum: -MAXIMUM_CAMERA_MOVE, maximum: MAXIMUM_CAMERA_MOVE }))
const config = record(Object.fromEntries(CAMERA_AXES.map((axis) => [axis, move])))
const shape = record({ type: optional(oneOf(CAMERA_TYPES)), config: optional(config) })

/** `camera_control {type, config}` by the upstream's rules: a movement of one axis, or a named movement without numbers. */
const cameraControl: FieldRule = (value, path) => {
  const found = shape(value, path)
  if (found !== undefined || !isRecord(value)) return found
  const moves = isRecord(value['config']) ? value['config'] : undefined
  if (value['type'] === STEERED) return steeredError(moves, `${path}.config`)
  // The upstream takes an object without a type as well; what it makes of it is its own business.
  return typeof value['type'] === 'string' ? presetError(value['type'], moves, `${path}.config`) : undefined
}

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
const modelName: FieldRule = (value, path) =>
  name(value, path) ??
  (typeof value === 'string' && /\p{Cc}/u.test(value)
    ? fieldError(path, 'invalid_value', `Invalid '${path}': it must not hold control characters.`)
    : undefined)

const prompt = text({ allowBlank: false, maximumCharacters: MAXIMUM_PROMPT_CHARACTERS })
const negativePrompt = text({ maximumCharacters: MAXIMUM_PROMPT_CHARACTERS })

/** Seconds as a string, as the upstream has them, or as a number, as callers may. */
const duration = (allowed: readonly string[]): FieldRule => {
  const shown = allowed.map((seconds) => `'${seconds}'`).join(', ')
  return (value, path) => {
    const isAllowed = (typeof value === 'string' || typeof value === 'number') && allowed.includes(String(value))
    if (isAllowed) return undefined
    return fieldError(path, 'invalid_value', `Invalid value for '${path}'. Supported values are: ${shown}.`)
  }
}

const EXTERNAL_TASK_ID = /^[A-Za-z0-9_.:-]{1,128}$/

const externalTaskId: FieldRule = (value, path) => {
  const shape = text()(value, path)
  if (shape !== undefined || typeof value !== 'string' || EXTERNAL_TASK_ID.test(value)) return shape
  return fieldError(
    path,
    'invalid_value',
    `Invalid '${path}': expected 1 to 128 letters, digits, underscores, full stops, colons or hyphens.`,
  )
}

const images = list(record({ image: required(image) }), { minimumItems: 1 })

/** `image_list`: how many is judged before any of them is looked at. */
const imageList: FieldRule = (value, path) => {
  if (!Array.isArray(value) || value.length <= MAXIMUM_IMAGES) return images(value, path)
  return fieldError(
    path,
    'array_above_max_length',
    `Invalid '${path}': array too long. Expected at most ${MAXIMUM_IMAGES} items.`,
  )
}

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

/** Specification: Video task (multi-image), create request fields; everything it does not list travels on. */
export class MultiImageVideoDto implements VideoFields {
  @Field(optional(oneOf(MULTI_IMAGE_MODELS)), { type: 'string', enum: MULTI_IMAGE_MODELS, default: 'vidgen-v1-6' })
  readonly model_name?: string | null

  @Field(required(imageList), {
    type: 'array',
    minItems: 1,
    description: '1 to 4 images: png or jpeg, at most 10 MB, both sides at least 300 pixels, ratio 1:2.5 to 2.5:1',
    items: {
      type: 'object',
      required: ['image'],
      properties: { image: { type: 'string', description: 'A public URL, or raw Base64 without a data: prefix' } },
    },
  })
  readonly image_list!: readonly unknown[]

  @Field(required(prompt), { type: 'string', description: 'At most 2500 characters' })
  readonly prompt!: string

  @Field(optional(negativePrompt), { type: 'string', description: 'At most 2500 characters' })
  readonly negative_prompt?: string | null

  @Field(optional(oneOf(MODES)), { type: 'string', enum: MODES, default: 'std' })
  readonly mode?: string | null

  @Field(optional(duration(MULTI_IMAGE_DURATIONS)), {
    description: 'Seconds; a number is accepted as well',
    default: '5',
    oneOf: [{ type: 'string', enum: MULTI_IMAGE_DURATIONS }, { type: 'integer' }],
  })
  readonly duration?: string | number | null

  @Field(optional(oneOf(ASPECT_RATIOS)), { type: 'string', enum: ASPECT_RATIOS, default: '16:9' })
  readonly aspect_ratio?: string | null

  @Field(optional(record({ enabled: optional(flag) })), {
    type: 'object',
    description: 'With true a watermarked result is made as well',
    properties: { enabled: { type: 'boolean' } },
  })
  readonly watermark_info?: Readonly<Record<string, unknown>> | null

  @Field(optional(text({ allowBlank: false })), { type: 'string', description: 'Status changes are pushed here' })
  readonly callback_url?: string | null

  @Field(optional(externalTaskId), {
    type: 'string',
    description: 'An id of your own, unique among your tasks; 1 to 128 of A-Z a-z 0-9 _ . : -',
  })
  readonly external_task_id?: string | null
}

const MOVE = { type: 'number', minimum: -MAXIMUM_CAMERA_MOVE, maximum: MAXIMUM_CAMERA_MOVE } as const

/** Specification: Video task (text-to-video); other parameters follow the upstream interface unchanged. */
export class TextVideoDto implements VideoFields {
  @Field(optional(modelName), { type: 'string', example: 'vidgen-v1-6' })
  readonly model_name?: string | null

  @Field(optional(modelName), {
    type: 'string',
    description: 'Taken for model_name where that is missing, as old clients send it',
  })
  readonly model?: string | null

  @Field(required(prompt), { type: 'string', description: 'At most 2500 characters' })
  readonly prompt!: string

  @Field(optional(negativePrompt), { type: 'string', description: 'At most 2500 characters' })
  readonly negative_prompt?: string | null

  @Field(optional(decimal({ minimum: 0, maximum: 1 })), { type: 'number', minimum: 0, maximum: 1 })
  readonly cfg_scale?: number | null

  @Field(optional(oneOf(MODES)), { type: 'string', enum: MODES })
  readonly mode?: string | null

  @Field(optional(cameraControl), {
    type: 'object',
    properties: {
      type: { type: 'string', enum: CAMERA_TYPES },
      config: {
        type: 'object',
        description: 'With type simple only; exactly one value is not 0',
        properties: Object.fromEntries(CAMERA_AXES.map((axis) => [axis, MOVE])),
      },
    },
  })
  readonly camera_control?: Readonly<Record<string, unknown>> | null

  @Field(optional(oneOf(ASPECT_RATIOS)), { type: 'string', enum: ASPECT_RATIOS })
  readonly aspect_ratio?: string | null

  @Field(optional(duration(TEXT_DURATIONS)), {
    description: 'Seconds',
    oneOf: [
      { type: 'string', enum: TEXT_DURATIONS },
      { type: 'integer', minimum: 3, maximum: 15 },
    ],
  })
  readonly duration?: string | number | null

  @Field(optional(record({ enabled: optional(flag) })), {
    type: 'object',
    properties: { enabled: { type: 'boolean' } },
  })
  readonly watermark_info?: Readonly<Record<string, unknown>> | null

  @Field(optional(text({ allowBlank: false })), { type: 'string', description: 'Status changes are pushed here' })
  readonly callback_url?: string | null

  @Field(optional(externalTaskId), {
    type: 'string',
    description: 'An id of your own, unique among your tasks; 1 to 128 of A-Z a-z 0-9 _ . : -',
  })
  readonly external_task_id?: string | null
}
