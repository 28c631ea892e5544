import { Field } from '../core/dto.js'
import type { ModelFields } from '../core/json-body.js'
import { required, text } from '../core/validation-rules.js'

/** What is read of a request; everything else travels on. */
export class EmbeddingsRequestDto implements ModelFields {
  @Field(required(text({ allowBlank: false })), { type: 'string', example: 'toy-vectors' })
  readonly model!: string

  @Field(required(text({ allowBlank: false })), { type: 'string' })
  readonly input!: string
}
