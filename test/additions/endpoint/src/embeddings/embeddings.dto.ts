import { Field } from '../core/dto.js'
import type { ModelFields } from '../core/json-body.js'
import { required, text } from '../core/validation-rules.js'

/** What is read of a request; everything else travels on. */
export class EmbeddingsRequestDto implements ModelFields {
  @Field(required(text({ allowBlank: false })), { description: 'Model identifier', example: 'toy-vectors' })
  readonly model!: string

  @Field(required(text({ allowBlank: false })), { description: 'What vectors are made of' })
  readonly input!: string
}
