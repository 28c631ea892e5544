import type { Exchange } from '../server/exchange.js'
import { multipartBoundary, MultipartError, MultipartReader, type ReceivedPart } from '../server/multipart-reader.js'
import { OpenAiRejection, reject } from '../server/openai-errors.js'

const NAMES = new Intl.DisplayNames(['en'], { type: 'language', fallback: 'none' })

/** The English name in lower case of an ISO 639-1 code, e.g. `de` → `german`; undefined for anything else. */
export function languageName(code: string): string | undefined {
  return /^[a-z]{2}$/.test(code) ? NAMES.of(code)?.toLowerCase() : undefined
}

/** The upload limit of the upstream, counted over the whole body. */
export const UPLOAD_LIMIT_BYTES = 26_214_400

/** A multipart request read to its end. */
export class TranscriptionForm {
  constructor(readonly parts: readonly ReceivedPart[]) {}

  /** The first text part of that name. */
  text(name: string): string | undefined {
    return this.parts.find((part) => part.name === name)?.value
  }

  /** All text parts of that name, in order. */
  texts(name: string): readonly string[] {
    return this.parts.filter((part) => part.name === name).flatMap((part) => part.value ?? [])
  }

  get file(): ReceivedPart | undefined {
    return this.parts.find((part) => part.name === 'file')
  }
}

/**
 * Reads a form with flat memory and records its parts. The body is always read to its end, so that the refusal can be
 * read by a caller who is still sending. Returns the refusal instead of throwing it: a fault may come first.
 */
export async function readForm(exchange: Exchange, limitBytes: number): Promise<TranscriptionForm | OpenAiRejection> {
  const { request } = exchange
  const boundary = multipartBoundary(request.headers['content-type'])
  if (boundary === undefined) {
    await exchange.drain()
    return new OpenAiRejection(415, 'Invalid Content-Type header, expected multipart/form-data with a boundary.')
  }
  const reader = new MultipartReader(boundary)
  let broken: string | undefined
  for await (const chunk of exchange.chunks()) {
    if (broken === undefined && request.receivedBytes <= limitBytes)
      broken = failureOf(() => {
        reader.push(chunk)
      })
  }
  request.parts = reader.parts
  if (request.receivedBytes > limitBytes) {
    const message = `Maximum content size limit (${limitBytes}) exceeded (${request.receivedBytes} bytes read)`
    return new OpenAiRejection(413, message, { type: 'server_error' })
  }
  broken ??= failureOf(() => reader.finish())
  if (broken !== undefined) return new OpenAiRejection(400, `Could not parse multipart form: ${broken}`)
  return new TranscriptionForm(reader.parts)
}

/** Refuses names outside `allowed`, repeated single fields and text fields that carry a filename. */
export function judgePartNames(form: TranscriptionForm, allowed: readonly string[]): void {
  const seen = new Set<string>()
  for (const part of form.parts) {
    const { name } = part
    if (!allowed.includes(name) && !(name.startsWith('chunking_strategy[') && allowed.includes('chunking_strategy'))) {
      reject(`Unknown parameter: '${name}'.`, name, 'unknown_parameter')
    }
    if (seen.has(name) && !name.endsWith('[]')) reject(`Duplicate parameter: '${name}'.`, name, 'duplicate_parameter')
    if (name !== 'file' && part.filename !== undefined)
      reject(`Invalid type for '${name}': expected a string.`, name, 'invalid_type')
    seen.add(name)
  }
}

/** The decimal a text part carries. Refuses anything else and values outside the range. */
export function judgeTemperature(form: TranscriptionForm): void {
  const text = form.text('temperature')
  if (text === undefined) return
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN
  if (Number.isNaN(value)) reject("Invalid type for 'temperature': expected a decimal.", 'temperature', 'invalid_type')
  if (value <= 1) return
  const limit = `Expected a value <= 1, but got ${text} instead.`
  reject(`Invalid 'temperature': decimal above maximum value. ${limit}`, 'temperature', 'decimal_above_max_value')
}

export function judgeGranularities(form: TranscriptionForm, format: string): readonly string[] {
  const name = 'timestamp_granularities[]'
  const values = form.texts(name)
  const wrong = values.find((value) => value !== 'word' && value !== 'segment')
  if (wrong !== undefined)
    reject(`Invalid value: '${wrong}'. Supported values are: 'word' and 'segment'.`, name, 'invalid_value')
  if (values.length > 0 && format !== 'verbose_json') {
    reject("'timestamp_granularities' is only supported with response_format 'verbose_json'.", name, 'invalid_value')
  }
  return values
}

function failureOf(step: () => unknown): string | undefined {
  try {
    step()
    return undefined
  } catch (error) {
    if (error instanceof MultipartError) return error.message
    throw error
  }
}
