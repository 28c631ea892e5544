import { gunzipSync } from 'node:zlib'
import { type ErrorKind, GatewayError, presentableMessage, scrubMessage } from '../../core/errors.js'
import type { SentCredentials } from '../../dialects/openai-wire.js'
import type { UpstreamResponse } from '../../upstream/exchange.js'
import { type AccountError, accountError, parseUpstreamError } from '../../upstream/upstream-error.js'

interface FailureRow {
  readonly kind: ErrorKind
  readonly code?: string
  readonly param?: string
  /** Shown where the upstream's own words are not, or say nothing. */
  readonly message: string
}
type CodeRow = FailureRow | { readonly account: AccountError }

const FAILED: FailureRow = { kind: 'upstream_failed', message: 'The upstream failed to speak.' }
const TIMED_OUT: FailureRow = { kind: 'upstream_timeout', message: 'The upstream took too long to speak.' }

/** Codes of error frames, and what becomes of them; one that is not here is a failure of the upstream. */
const P2_CODES: Readonly<Record<number, CodeRow>> = {
  3001: { kind: 'invalid_request', message: 'The upstream refused the request.' },
  3003: { account: 'busy' },
  3005: FAILED,
  3006: FAILED,
  3010: {
    kind: 'invalid_request',
    param: 'input',
    code: 'string_above_max_length',
    message: "Invalid 'input': string too long for the upstream.",
  },
  3011: {
    kind: 'invalid_request',
    param: 'input',
    code: 'invalid_value',
    message: "Invalid 'input': the upstream cannot speak this text.",
  },
  3030: TIMED_OUT,
  3031: FAILED,
  3032: TIMED_OUT,
  3040: FAILED,
  3050: {
    kind: 'invalid_request',
    param: 'voice',
    code: 'voice_not_found',
    message: "Invalid 'voice': the upstream does not know it.",
  },
}

/** Words about the account behind the key; they come with several codes and then decide. The hint is the operator's. */
const ACCOUNT_WORDS: readonly (readonly [RegExp, AccountError, hint: string])[] = [
  [/requested grant not found/i, 'key', 'app id and access token do not belong to an app with this service'],
  [/get resource id|access denied/i, 'access', 'the app has not bought this voice or service'],
  [/quota exceeded for types: *concurrency/i, 'busy', 'more syntheses at a time than the app has bought'],
  [/quota exceeded for types:/i, 'quota', 'the trial or package of the app is used up'],
]

const OPERATOR_HINTS: readonly (readonly [RegExp, hint: string])[] = [
  [/Init Engine Instance failed/i, 'the voice does not belong to the cluster: see the option cluster'],
  [/^55000000:/, 'the voice and the resource are of different generations'],
]

/** What an error frame means and whose fault it is. Never throws; `text` may hold anything. */
export function parseP2Error(code: number, text: string, sent: SentCredentials): GatewayError {
  const words = withoutKey(text, sent.credentials)
  const row = P2_CODES[code] ?? FAILED
  // A code that names a field is about the request, and its words may repeat what the caller wrote there.
  const isOfField = 'param' in row
  const [, fault, accountHint] = (isOfField ? undefined : ACCOUNT_WORDS.find(([pattern]) => pattern.test(words))) ?? []
  const hint = accountHint ?? OPERATOR_HINTS.find(([pattern]) => pattern.test(`${code}: ${words}`))?.[1]
  const cause = causeOf(code, words, hint)
  if (fault !== undefined) return accountError(fault, sent.callersKey, { cause })
  if ('account' in row) return accountError(row.account, sent.callersKey, { cause })
  if (row.kind === 'invalid_request') return callerError(row, words, cause)
  const attempt = { phase: 'answered', channelError: true } as const
  // The upstream itself has given up, so that nothing runs on that a second request would pay for again.
  return new GatewayError(row.kind, row.message, { cause, attempt, retryable: true })
}

/**
 * What an HTTP answer in place of the upgrade means. A handshake holds nothing of the caller's but its key, so that
 * every refusal which is not about the key is the channel's fault: 404 is a wrong address, not an unknown model, and
 * 503 its overload.
 */
export async function handshakeError(response: UpstreamResponse, sent: SentCredentials): Promise<GatewayError> {
  let words = ''
  const read = (_body: Record<string, unknown>, text: string): undefined => {
    words = withoutKey(text, sent.credentials)
  }
  const error = await parseUpstreamError(response, { read, callersKey: sent.callersKey, secret: sent.credentials })
  const cause = causeOf(response.status, words)
  if (HANDSHAKE_KINDS.has(error.kind)) return new GatewayError(error.kind, error.message, { ...error.details, cause })
  const attempt = { phase: 'answered', channelError: true } as const
  return new GatewayError('upstream_failed', `The upstream failed with status ${response.status}.`, { cause, attempt })
}

/** What a handshake can tell: of the key, and of the upstream's capacity. */
const HANDSHAKE_KINDS: ReadonlySet<ErrorKind> = new Set([
  'unauthorized',
  'forbidden_model',
  'rate_limited',
  'upstream_failed',
  'upstream_overloaded',
])

const callerError = ({ kind, message, code, param }: FailureRow, words: string, cause: Error): GatewayError =>
  new GatewayError(kind, words.trim() === '' ? message : words, {
    cause,
    attempt: { phase: 'answered' },
    ...(code === undefined ? {} : { code }),
    ...(param === undefined ? {} : { param }),
  })

/** For the log: what the upstream said, and what that means to the channel's operator. */
const causeOf = (code: number, words: string, hint?: string): Error =>
  new Error(presentableMessage(`P2 answered ${code}: ${words}${hint === undefined ? '' : ` (${hint})`}`))

/** The upstream's words without the parts of the key, which it may quote. */
function withoutKey(text: string, credentials: string): string {
  const parts = [credentials, ...credentials.split('|')].filter((part) => part !== '')
  // The longest first: the app id may stand within the token.
  parts.sort((one, other) => other.length - one.length)
  return scrubMessage(parts.reduce((words, part) => words.replaceAll(part, '[key]'), text))
}

/** One server message of the v1 binary protocol. `last` = the synthesis is complete; its audio may be empty. */
export type P2Frame =
  | { readonly kind: 'acknowledgement' }
  | { readonly kind: 'audio'; readonly last: boolean; readonly audio: Buffer }
  | { readonly kind: 'frontEnd' }
  | { readonly kind: 'error'; readonly code: number; readonly text: string }

const WORD_BYTES = 4
/** Version 1, a header of one word; a full client request without flags; JSON, not compressed; reserved. */
const REQUEST_HEADER = Buffer.from([0x11, 0x10, 0x10, 0x00])
/** This header size means "read it from the extension"; no server sends it and no size could be trusted. */
const EXTENDED_HEADER_SIZE = 0xf

const AUDIO = 0xb
const FRONT_END = 0xc
const ERROR = 0xf
const FLAGS_WITHOUT_SEQUENCE = 0x0
const FLAGS_LAST = 0x2
const GREATEST_FLAGS = 0x3
const RAW = 0x0
const JSON_TEXT = 0x1
const PLAIN = 0x0
const GZIP = 0x1

/** Decompressed sizes; a small message must not be able to fill the memory. */
const MAXIMUM_ERROR_BYTES = 64 * 1024
const MAXIMUM_AUDIO_BYTES = 8 * 1024 * 1024

interface Header {
  readonly bytes: number
  readonly type: number
  readonly flags: number
  readonly serialization: number
  readonly isGzip: boolean
}

/** A client request as one binary message: 4 bytes of header, the payload's size, the JSON payload as it is. */
export function encodeRequest(payload: Buffer): Buffer {
  const size = Buffer.alloc(WORD_BYTES)
  size.writeUInt32BE(payload.length)
  return Buffer.concat([REQUEST_HEADER, size, payload])
}

/**
 * Reads one server message; undefined = malformed, or a version, type, flag or compression that v1 speech does not
 * have. Never throws. Plain audio is a view into the message, not a copy.
 */
export function decodeFrame(message: Buffer): P2Frame | undefined {
  const header = readHeader(message)
  if (header === undefined) return undefined
  const body = message.subarray(header.bytes)
  switch (header.type) {
    case AUDIO:
      return audioFrame(header, body)
    case FRONT_END:
      return readSequenced(header.flags, body) && { kind: 'frontEnd' }
    case ERROR:
      return errorFrame(header, body)
    default:
      return undefined
  }
}

function readHeader(message: Buffer): Header | undefined {
  if (message.length < WORD_BYTES) return undefined
  const [version, words] = nibbles(message.readUInt8(0))
  if (version !== 1 || words === 0 || words === EXTENDED_HEADER_SIZE) return undefined
  const bytes = words * WORD_BYTES
  if (message.length < bytes) return undefined
  const [type, flags] = nibbles(message.readUInt8(1))
  const [serialization, compression] = nibbles(message.readUInt8(2))
  if (flags > GREATEST_FLAGS || serialization > JSON_TEXT || compression > GZIP) return undefined
  return { bytes, type, flags, serialization, isGzip: compression !== PLAIN }
}

const nibbles = (byte: number): readonly [number, number] => [byte >> 4, byte & 0xf]

function audioFrame(header: Header, body: Buffer): P2Frame | undefined {
  const hasNoSequence = header.flags === FLAGS_WITHOUT_SEQUENCE
  // Some server versions leave the size out of an acknowledgement.
  if (hasNoSequence && body.length === 0) return { kind: 'acknowledgement' }
  const read = readSequenced(header.flags, body)
  if (read === undefined) return undefined
  // The documentation knows only empty acknowledgements; raw bytes in one would be audio that must not be lost.
  if (hasNoSequence && (read.payload.length === 0 || header.serialization !== RAW)) return { kind: 'acknowledgement' }
  const audio = header.isGzip ? decompressed(read.payload, MAXIMUM_AUDIO_BYTES) : read.payload
  return audio && { kind: 'audio', last: read.last, audio }
}

function errorFrame(header: Header, body: Buffer): P2Frame | undefined {
  // An error carries its code where others carry a sequence number, whatever its flags.
  const sized = sizedPayload(body, WORD_BYTES)
  const payload = sized && header.isGzip ? decompressed(sized, MAXIMUM_ERROR_BYTES) : sized
  return payload && { kind: 'error', code: body.readUInt32BE(0), text: errorText(payload.toString('utf8')) }
}

interface Sequenced {
  readonly last: boolean
  readonly payload: Buffer
}

/** The payload behind the optional sequence number; the end of the audio is a negative number or the flag `last`. */
function readSequenced(flags: number, body: Buffer): Sequenced | undefined {
  const payload = sizedPayload(body, flags === FLAGS_WITHOUT_SEQUENCE ? 0 : WORD_BYTES)
  if (flags === FLAGS_WITHOUT_SEQUENCE) return payload && { last: false, payload }
  const isNegative = payload !== undefined && body.readInt32BE(0) < 0
  if (flags !== FLAGS_LAST) return payload && { last: isNegative, payload }
  // The versions of the documentation disagree on whether a sequence number stands here.
  const last = isNegative ? payload : sizedPayload(body, 0)
  return last && { last: true, payload: last }
}

/** The payload behind a size word at `offset`; undefined unless it ends exactly where the message ends. */
function sizedPayload(body: Buffer, offset: number): Buffer | undefined {
  const start = offset + WORD_BYTES
  if (body.length < start || body.readUInt32BE(offset) !== body.length - start) return undefined
  return body.subarray(start)
}

function decompressed(payload: Buffer, maximumBytes: number): Buffer | undefined {
  if (payload.length === 0) return payload
  try {
    return gunzipSync(payload, { maxOutputLength: maximumBytes })
  } catch {
    return undefined
  }
}

/** Errors are words, or a JSON object {reqid, code, message} around them. */
function errorText(text: string): string {
  try {
    const { message } = Object(JSON.parse(text)) as { message?: unknown }
    if (typeof message === 'string' && message !== '') return message
  } catch {
    // Not JSON: the words themselves.
  }
  return text
}
