import { Field } from '../core/field.decorator.js'
import { flag, oneOf, optional, record, required, text } from '../core/validation-rules.js'
import {
  ASPECT_RATIOS,
  duration,
  externalTaskId,
  imageList,
  MODES,
  MULTI_IMAGE_DURATIONS,
  negativePrompt,
  prompt,
} from './video-field-rules.js'
import type { VideoFields } from './video-fields.js'
import { MULTI_IMAGE_MODELS } from './video-models.js'

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
