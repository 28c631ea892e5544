import { createHash } from 'node:crypto'
import type { Exchange } from '../server/exchange.js'
import { estimateTokens } from '../server/generated-text.js'
import type { JsonObject } from '../server/json-value.js'
import { type OpenAiFaultOptions, reject, unknownModel } from '../server/openai-errors.js'
import { tokenUnits } from '../server/served-usage.js'
import { answerJson, pretty } from './json-request.js'
import { type P1Context, p1Headers } from './p1-context.js'

const MAXIMUM_INPUTS = 2048
const INPUT_TOKENS = 8192
const REQUEST_TOKENS = 300_000

/** Length of a vector, and whether a caller may choose a shorter one. */
const MODELS: Readonly<Record<string, { readonly dimensions: number; readonly canBeShorter: boolean }>> = {
  'text-embedding-3-small': { dimensions: 1536, canBeShorter: true },
  'text-embedding-3-large': { dimensions: 3072, canBeShorter: true },
  'text-embedding-ada-002': { dimensions: 1536, canBeShorter: false },
}

export const EMBEDDING_MODEL_IDS: readonly string[] = Object.keys(MODELS)

const FIELDS: ReadonlySet<string> = new Set(['model', 'input', 'encoding_format', 'dimensions', 'user'])

/** One text, or the tokens of one. */
type Input = string | readonly number[]

interface EmbeddingsRequest {
  readonly model: string
  readonly inputs: readonly Input[]
  readonly dimensions: number
  readonly isBase64: boolean
}

/** POST /v1/embeddings. */
export async function serveEmbeddings(exchange: Exchange, context: P1Context): Promise<void> {
  const options: OpenAiFaultOptions = {
    headers: p1Headers(exchange, { tokenLimits: true }),
    render: pretty,
    lineEnd: '\n',
  }
  await answerJson(exchange, options, callerText, async (body) => {
    const request = judge(body, context)
    const answer = embeddings(request)
    exchange.serve(request.model, tokenUnits(answer['usage']))
    await exchange.send(200, { ...options.headers, 'content-type': 'application/json' }, pretty(answer))
  })
}

/** What may ask for a fault. */
const callerText = ({ input }: JsonObject): string | undefined =>
  [input].flat().find((item): item is string => typeof item === 'string')

function judge(body: JsonObject, { acceptUnknownFields }: P1Context): EmbeddingsRequest {
  const { model, encoding_format: format = 'float', user } = body
  const unknown = Object.keys(body).find((name) => !FIELDS.has(name))
  if (unknown !== undefined && !acceptUnknownFields)
    reject(`Unrecognized request argument supplied: ${unknown}`, null, 'unknown_parameter')
  if (typeof model !== 'string') reject('you must provide a model parameter')
  const traits = Object.hasOwn(MODELS, model) ? MODELS[model] : undefined
  if (traits === undefined) throw unknownModel(model)
  if (format !== null && format !== 'float' && format !== 'base64')
    reject(`Invalid value for 'encoding_format': ${JSON.stringify(format)}.`, 'encoding_format', 'invalid_value')
  if (user !== undefined && user !== null && typeof user !== 'string') reject("Invalid type for 'user'.", 'user')
  const inputs = inputsOf(body['input'])
  judgeLengths(inputs)
  return { model, inputs, dimensions: dimensionsOf(body, traits), isBase64: format === 'base64' }
}

function dimensionsOf(
  { dimensions }: JsonObject,
  traits: { readonly dimensions: number; readonly canBeShorter: boolean },
): number {
  if (dimensions === undefined || dimensions === null) return traits.dimensions
  if (!traits.canBeShorter) reject('This model does not support specifying dimensions.')
  const isAllowed = Number.isInteger(dimensions) && Number(dimensions) > 0 && Number(dimensions) <= traits.dimensions
  if (!isAllowed) reject(`Invalid value for 'dimensions': expected 1 to ${traits.dimensions}.`, 'dimensions')
  return Number(dimensions)
}

const invalidInput = (): never => reject("'$.input' is invalid. Please check the API reference.", null)

function inputsOf(input: unknown): readonly Input[] {
  if (typeof input === 'string') return input === '' ? invalidInput() : [input]
  if (!Array.isArray(input) || input.length === 0) return invalidInput()
  if (isTokens(input)) return [input]
  if (input.length > MAXIMUM_INPUTS)
    reject(`Invalid 'input': array too long. Expected at most ${MAXIMUM_INPUTS} items.`, 'input')
  const isText = (item: unknown): item is string => typeof item === 'string' && item !== ''
  return input.every(isText) || input.every(isTokens) ? input : invalidInput()
}

const isTokens = (value: unknown): value is number[] =>
  Array.isArray(value) && value.length > 0 && value.every((token) => Number.isInteger(token) && Number(token) >= 0)

function judgeLengths(inputs: readonly Input[]): void {
  const longest = Math.max(...inputs.map(tokensIn))
  if (longest > INPUT_TOKENS) {
    const advice = 'Please reduce your prompt; or completion length.'
    reject(
      `This model's maximum context length is ${INPUT_TOKENS} tokens, however you requested ${longest} tokens. ${advice}`,
    )
  }
  if (tokensOfAll(inputs) > REQUEST_TOKENS)
    reject(
      `Invalid 'input': maximum request size is ${REQUEST_TOKENS} tokens per request.`,
      null,
      'max_tokens_per_request',
    )
}

const tokensIn = (input: Input): number => (typeof input === 'string' ? estimateTokens(input) : input.length)
const tokensOfAll = (inputs: readonly Input[]): number => inputs.reduce((sum, input) => sum + tokensIn(input), 0)

function embeddings({ model, inputs, dimensions, isBase64 }: EmbeddingsRequest): Readonly<Record<string, unknown>> {
  const tokens = tokensOfAll(inputs)
  const data = inputs.map((input, index) => {
    const vector = vectorOf(input, dimensions)
    const embedding = isBase64 ? Buffer.from(vector.buffer).toString('base64') : Array.from(vector)
    return { object: 'embedding', index, embedding }
  })
  return { object: 'list', data, model, usage: { prompt_tokens: tokens, total_tokens: tokens } }
}

/** Places that a word has in a vector. */
const PLACES_PER_WORD = 8

/** A vector of length 1 in which texts with the same words are near each other, as search by meaning needs it. */
function vectorOf(input: Input, dimensions: number): Float32Array {
  const vector = new Float32Array(dimensions)
  const words = typeof input === 'string' ? (input.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [input]) : input
  for (const word of words) {
    const hash = createHash('sha256').update(String(word)).digest()
    for (let place = 0; place < PLACES_PER_WORD; place++) {
      const number = hash.readUInt32LE(place * 4)
      const index = number % dimensions
      vector[index] = (vector[index] ?? 0) + ((number >>> 16) % 2 === 0 ? 1 : -1)
    }
  }
  const length = Math.hypot(...vector) || 1
  return vector.map((value) => value / length)
}
