import { Field } from '../core/field.decorator.js'
import { fault, type FieldRule, flag, optional } from '../core/validation-rules.js'
import { flagText, timeout, timeoutText } from './document-fields.rule.js'
import { documentUrl } from './document.dto.js'

const urlDocumentation = {
  type: 'string',
  description: 'Absolute http or https URL of at most 8,192 characters that leads to a public address',
  example: 'https://example.org/report.pdf',
} as const
const timeoutDocumentation = {
  type: 'number',
  description: 'Seconds for the whole of the work; from 1,000 on milliseconds',
  example: 20,
} as const
const noCacheDocumentation = {
  type: 'boolean',
  default: false,
  description: 'Reads the document anew, also when the result is still known',
} as const

const requiredUrl: FieldRule = (value, path) =>
  value === undefined || value === null
    ? fault(
        path,
        'missing_required_parameter',
        `Missing required parameter: '${path}'. Send it as JSON, or send a file.`,
      )
    : documentUrl(value, path)

const anything: FieldRule = () => undefined

/** URL mode of the specification; unknown fields mean nothing. */
export class DocumentUrlDto {
  @Field(requiredUrl, urlDocumentation)
  readonly url!: string

  @Field(optional(timeout), timeoutDocumentation)
  readonly timeout?: number | null

  @Field(optional(flag), noCacheDocumentation)
  readonly no_cache?: boolean | null
}

/** What may stand beside a file where all values are text: in the query of a raw body. */
export class DocumentTermsDto {
  @Field(optional(timeoutText), timeoutDocumentation)
  readonly timeout?: string

  @Field(optional(flagText), noCacheDocumentation)
  readonly no_cache?: string
}

/** File-upload mode as a form. A form without a file may name a URL instead. */
export class DocumentFormDto extends DocumentTermsDto {
  /** Arrives as a file part; what is wrong with it is found out where its bytes are. */
  @Field(anything, { type: 'string', format: 'binary', description: 'The document; its name and type are hints' })
  readonly file?: unknown

  @Field(optional(documentUrl), { ...urlDocumentation, description: 'Instead of the file' })
  readonly url?: string
}
