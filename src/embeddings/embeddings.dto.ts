import { Field } from '../core/dto.js'
import type { ModelFields } from '../core/json-body.js'
import type { FieldError } from '../core/errors.js'
import { TEXT } from '../core/json-schema.js'
import { integer, list, named, oneOf, optional, required, shown, text, wrongType } from '../core/validation-rules.js'

/** The upstream's limit, and that of every upstream of this dialect that says one. */
const MAXIMUM_INPUTS = 2048

const anyText = text()
const nonEmpty = text({ allowBlank: false })
/** White space is a text: only an empty one has no vector. */
const inputText = shown({ ...TEXT, minLength: 1 }, (value, path) =>
  value === '' ? nonEmpty(value, path) : anyText(value, path),
)
const tokens = list(integer({ minimum: 0 }), { minimumItems: 1, itemWord: 'tokens' })

const LIMITS = { minimumItems: 1, maximumItems: MAXIMUM_INPUTS, itemWord: 'inputs' } as const
const texts = list(inputText, LIMITS)
const tokenLists = list(tokens, LIMITS)

/** The first item says what a list is of, so that a message names the item that is wrong. */
function inputList(value: readonly unknown[], path: string): FieldError | undefined {
  const [first] = value
  if (first === undefined || typeof first === 'string') return texts(value, path)
  if (Array.isArray(first)) return tokenLists(value, path)
  if (typeof first === 'number') return tokens(value, path)
  return wrongType(`${path}[0]`, 'a string, an integer or an array', first)
}

const input = named(
  'EmbeddingsInput',
  'A text, the tokens of one, or a list of either',
  shown({ anyOf: [inputText, texts, tokens, tokenLists].map(({ schema = {} }) => schema) }, (value, path) => {
    if (typeof value === 'string') return inputText(value, path)
    return Array.isArray(value) ? inputList(value, path) : wrongType(path, 'a string or an array', value)
  }),
)

const encodingFormat = named('EmbeddingEncodingFormat', 'How vectors are written', oneOf(['float', 'base64']))

/** The fields that clients of embeddings share; all others are relayed unchanged. */
export class EmbeddingsRequestDto implements ModelFields {
  @Field(required(text({ allowBlank: false })), { description: 'Model identifier', example: 'text-embedding-3-small' })
  readonly model!: string

  @Field(required(input), { description: 'What is turned into vectors, one for each text' })
  readonly input!: unknown

  @Field(optional(encodingFormat), {
    description: 'Numbers, or their bytes as Base64 (32-bit floats, little-endian), which the official SDKs ask for',
    default: 'float',
  })
  readonly encoding_format?: string | null

  @Field(optional(integer({ minimum: 1 })), { description: 'How long vectors are, where the model lets one choose' })
  readonly dimensions?: number | null

  @Field(optional(text()), { description: 'The end user, for the upstream' })
  readonly user?: string | null

  /** How many token ids `input` has, once it is left out. */
  readonly tokenIds?: number
}

/** What is read after the check: of up to half a million ids only the bytes stay in memory. */
export const withoutInput = ({ input: checked, ...fields }: EmbeddingsRequestDto): EmbeddingsRequestDto => ({
  ...fields,
  input: undefined,
  tokenIds: Array.isArray(checked) ? checked.reduce<number>((sum, item: unknown) => sum + idsIn(item), 0) : 0,
})

function idsIn(item: unknown): number {
  if (Array.isArray(item)) return item.length
  return typeof item === 'number' ? 1 : 0
}
