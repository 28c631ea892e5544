import { Field } from '../core/field.decorator.js'
import { decimal, flag, oneOf, optional, record, required, text } from '../core/validation-rules.js'
import { CAMERA_AXES, CAMERA_TYPES, cameraControl, MAXIMUM_CAMERA_MOVE } from './camera-control.rule.js'
import {
  ASPECT_RATIOS,
  duration,
  externalTaskId,
  modelName,
  MODES,
  negativePrompt,
  prompt,
  TEXT_DURATIONS,
} from './video-field-rules.js'
import type { VideoFields } from './video-fields.js'

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
