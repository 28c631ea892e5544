import { Field } from '../core/dto.js'
import type { ModelFields } from '../core/json-body.js'
import { required, text } from '../core/validation-rules.js'

/** What is read of a request; everything else travels on. */
export class ModerationsRequestDto implements ModelFields {
  @Field(required(text({ allowBlank: false })), { description: 'Model identifier', example: 'toy-moderator' })
  readonly model!: string

  @Field(required(text({ allowBlank: false })), { description: 'What is judged' })
  readonly input!: string
}
