import type { UpstreamResponse } from '../../upstream/upstream-client.js'
import type { ReadDocument, ReadMetadata } from '../contract.js'

export type JsonObject = Readonly<Record<string, unknown>>

/** An answer as far as it could be read. */
export interface ReaderResponse {
  readonly status: number
  /** Empty when the body is no JSON object: a page of some proxy, or broken. */
  readonly body: JsonObject
  /** What the reader says about it; may be empty. */
  readonly words: string
  /** 1 to 60. */
  readonly retryAfterSeconds: number
}

/** Reads what there is; never throws. */
export function readReaderResponse({ status, headers }: Pick<UpstreamResponse, 'status' | 'headers'>, bytes: Buffer) {
  const body = objectOf(parsed(bytes))
  const seconds = Number(headers['retry-after'])
  return {
    status,
    body,
    words: firstText(body['message'], body['error'], body['readableMessage'], objectOf(body['error'])['message']),
    retryAfterSeconds: Number.isFinite(seconds) ? Math.min(60, Math.max(1, Math.ceil(seconds))) : 1,
  } satisfies ReaderResponse
}

export const isSuccessful = ({ status }: ReaderResponse): boolean => status >= 200 && status < 300

export const objectOf = (value: unknown): JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {}

/** The first that is a string with something in it; lists of strings count as one, joined. */
export function firstText(...values: readonly unknown[]): string {
  for (const value of values) {
    const text = Array.isArray(value) ? value.filter((item) => typeof item === 'string').join(', ') : value
    if (typeof text === 'string' && text !== '') return text
  }
  return ''
}

export const countOf = (value: unknown, fallback: number): number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : fallback

/** A document in the shape of the contract. */
export const readDocument = (
  metadata: ReadMetadata,
  texts: { readonly html: string; readonly markdown: string },
  more: Pick<ReadDocument, 'pages' | 'isCached'>,
): ReadDocument => ({
  metadata,
  content: Buffer.from(`"html":${JSON.stringify(texts.html)},"markdown":${JSON.stringify(texts.markdown)}`),
  ...more,
})

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString())
  } catch {
    return undefined
  }
}
