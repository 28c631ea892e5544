import { type ByteSink, type ByteSource, collect, ProviderResponse } from '../core/byte-stream.js'
import { GatewayError, type GatewayErrorDetails } from '../core/errors.js'
import type { JsonBody } from '../core/json-body.js'
import { JsonTexts } from '../core/json-text.js'
import type { MemoryLease } from '../core/quota.js'
import { dataOf, framesOf, jsonOf } from '../core/sse.js'
import { isRecord } from '../core/validation-rules.js'
import { eventResponse, malformedResponse } from '../upstream/upstream-response.js'
import type { MadeResponse } from './kept-answers.js'
import type { ModelFacts } from './model-facts.js'
import type { Verdicts } from './verdicts.js'

/** Seals what a client keeps for the gateway, for one owner. */
export interface Seals {
  /** The text, unreadable for others. */
  seal(text: string): string
  /** undefined for what was not sealed here for this owner. */
  open(sealed: string): string | undefined
}

/** Remembers what a model thought before it called a tool, for one owner: JSON text of blocks, by the id of the call. */
export interface Thoughts {
  remember(toolCallId: string, blocks: string): void
  recall(toolCallId: string): string | undefined
}

/** What the gateway keeps of a conversation of responses. */
export interface KeptTurn {
  /** Whether it keeps this response. */
  readonly isStored: boolean
  /** As the caller named it; its conversation stands in the input. */
  readonly previousResponseId?: string | undefined
  /** What the caller calls an item of the input; absent = by its index. */
  readonly pathOf?: ((index: number) => string) | undefined
}

export type UnknownWordKind = 'finish reason' | 'stop reason' | 'event'

/** Reports stop reasons and event types that no table knows: unknown reasons count as a normal end, unknown events are skipped. */
export interface UnknownWords {
  note(kind: UnknownWordKind, word: string): void
}

/** Counts bytes held until the request is over. */
type HeldMemory = Pick<MemoryLease, 'add'>

/** Where a translated request goes, and what its translation may use. */
export interface TranslationTarget {
  readonly upstreamModel: string
  readonly facts: ModelFacts
  readonly requestId: string
  readonly seals: Seals
  /** Absent where nothing is to be remembered. */
  readonly thoughts?: Thoughts | undefined
  readonly memory?: HeldMemory | undefined
  readonly unknownWords?: UnknownWords | undefined
  /** Of a request for a response; absent = nothing is kept. */
  readonly kept?: KeptTurn | undefined
}

/**
 * Translates a request from a client's dialect to an upstream's; what it returns translates the answer back. Pure but for what the
 * target remembers. Throws `invalid_request` with code `unsupported_value`, naming the client's own field, for values that the
 * upstream's dialect lacks; what else is lost or approximated is noted in `verdicts`.
 */
export type Translator<Fields extends object, UpstreamFields extends object> = (
  body: JsonBody<Fields>,
  target: TranslationTarget,
  verdicts: Verdicts,
) => Translation<UpstreamFields>

/** A question in another dialect, such as that for a number of tokens: its answer is never a stream. */
export interface QuestionTranslation<UpstreamFields extends object> {
  /** In the upstream's dialect. */
  readonly request: JsonBody<UpstreamFields>
  /**
   * JSON text of a whole response in the client's dialect; `texts` is the same answer with numbers spelled as they came. Throws
   * `upstream_failed` if a required member is missing.
   */
  response(answer: Readonly<Record<string, unknown>>, texts: JsonTexts): string
  /** An error with the client's name of its field. */
  error(error: GatewayError): GatewayError
}

/** One request in another dialect. */
export interface Translation<UpstreamFields extends object> extends QuestionTranslation<UpstreamFields> {
  /** A new translation of the event stream. */
  events(): EventTranslation
  /** Of a response: what may be kept of it, from when the client's answer is written. */
  made?(): MadeResponse | undefined
}

/** The state of one stream's translation. */
export interface EventTranslation {
  /** The client's frames, complete with their empty lines, for one event of the upstream; '' for none. May throw as `response`. */
  event(data: Readonly<Record<string, unknown>>): string
  /** Final frames of the client's stream; called once, after the upstream's stream was complete. */
  end(): string
  /** The frame of a failure after the first frame, in dialects where it holds more than the error; called at most once. */
  failure?(error: GatewayError): string
}

/** Limit of a whole response, which must be read to be translated; a larger one is the upstream's failure. */
const MAXIMUM_RESPONSE_BYTES = 16 * 1024 * 1024

/**
 * Sends a translated request and translates the response. `send` returns the upstream's response in its own dialect, checked
 * for completeness by the relay of that dialect, which delivers a stream in whole frames; its usage is kept.
 */
export async function sendTranslated<UpstreamFields extends object>(
  translation: QuestionTranslation<UpstreamFields> | Translation<UpstreamFields>,
  memory: HeldMemory | undefined,
  send: (request: JsonBody<UpstreamFields>) => Promise<ProviderResponse>,
): Promise<ProviderResponse> {
  const response = await send(translation.request).catch(failedWith(translation))
  return isEventStream(response)
    ? await translatedStream(response, translation)
    : await translatedWhole(response, translation, memory)
}

const isEventStream = ({ headers }: ProviderResponse): boolean =>
  headers['content-type']?.startsWith('text/event-stream') === true

async function translatedWhole(
  { status, headers, body, usage }: ProviderResponse,
  translation: QuestionTranslation<object>,
  memory: HeldMemory | undefined,
): Promise<ProviderResponse> {
  const bytes = Buffer.isBuffer(body)
    ? body
    : await collect(body, MAXIMUM_RESPONSE_BYTES, tooLarge).catch(failedWith(translation))
  if (!Buffer.isBuffer(body)) memory?.add(bytes.length)
  const answer = Buffer.from(translatedAnswer(bytes, translation))
  return new ProviderResponse(status, { ...keptHeaders(headers), 'content-type': 'application/json' }, answer, usage)
}

function translatedAnswer(bytes: Buffer, translation: QuestionTranslation<object>): string {
  try {
    return translation.response(parsed(bytes), new JsonTexts(bytes))
  } catch (error) {
    throw untranslatable(error)
  }
}

/**
 * The upstream has answered, and will be paid: what the translation cannot say is no reason to ask another one, nor a fault of the
 * channel that others should be kept from.
 */
function untranslatable(error: unknown): GatewayError {
  const message = 'The upstream sent an answer that cannot be translated.'
  if (!(error instanceof GatewayError)) return new GatewayError('upstream_failed', message, { cause: error })
  return new GatewayError(error.kind, error.message, { ...detailsWithout(error, 'attempt'), cause: error })
}

function parsed(bytes: Buffer): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(bytes.toString())
    if (isRecord(value)) return value
  } catch {
    // As for any other text that is no JSON object.
  }
  throw malformedResponse('The upstream answered with broken JSON.')
}

async function translatedStream(
  { status, headers, body, usage }: ProviderResponse,
  translation: QuestionTranslation<object> | Translation<object>,
): Promise<ProviderResponse> {
  if (Buffer.isBuffer(body)) throw malformedResponse('The upstream answered with an event stream that had ended.')
  const events = new TranslatedEvents(body, begun(translation, body), (error) => translatedError(translation, error))
  return await eventResponse(status, keptHeaders(headers), events, usage)
}

/** What means the same in every dialect. An upstream's own, such as what is left of its limits, are of its dialect and account. */
const KEPT_HEADERS: ReadonlySet<string> = new Set(['cache-control', 'retry-after', 'retry-after-ms', 'x-should-retry'])

const keptHeaders = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => KEPT_HEADERS.has(name)))

/** An upstream whose stream cannot be translated is aborted. */
function begun(translation: QuestionTranslation<object> | Translation<object>, body: ByteSource): EventTranslation {
  try {
    if ('events' in translation) return translation.events()
    throw malformedResponse('The upstream answered a question with an event stream.')
  } catch (error) {
    body.cancel()
    throw error
  }
}

/** The upstream's error body is in its own dialect: the client gets a rendered error instead. */
function translatedError(translation: Pick<Translation<object>, 'error'>, error: GatewayError): GatewayError {
  return translation.error(new GatewayError(error.kind, error.message, detailsWithout(error, 'relayed', 'frame')))
}

const detailsWithout = ({ details }: GatewayError, ...names: readonly string[]): GatewayErrorDetails =>
  Object.fromEntries(Object.entries(details).filter(([name]) => !names.includes(name)))

const failedWith =
  (translation: Pick<Translation<object>, 'error'>) =>
  (error: unknown): never => {
    throw error instanceof GatewayError ? translatedError(translation, error) : error
  }

const tooLarge = (): GatewayError => malformedResponse('The upstream answered with more than can be translated.')

/** An event stream in another dialect, of a source of whole frames; comments, such as keep-alive, pass as they are. */
class TranslatedEvents implements ByteSource, ByteSink {
  private sink!: ByteSink
  private isOver = false

  constructor(
    private readonly source: ByteSource,
    private readonly translation: EventTranslation,
    private readonly errorOf: (error: GatewayError) => GatewayError,
  ) {}

  start(sink: ByteSink): void {
    this.sink = sink
    this.source.start(this)
  }

  pause(): void {
    this.source.pause()
  }

  resume(): void {
    this.source.resume()
  }

  cancel(): void {
    this.isOver = true
    this.source.cancel()
  }

  data(frames: Buffer): void {
    if (!this.isOver) this.forward(framesOf(frames), (frame) => this.framesFor(frame))
  }

  end(): void {
    if (this.isOver || !this.forward([undefined], () => this.translation.end())) return
    this.isOver = true
    this.sink.end()
  }

  fail(error: GatewayError): void {
    if (this.isOver) return
    this.isOver = true
    this.sink.fail(this.shown(this.errorOf(error)))
  }

  private framesFor(frame: Buffer): string {
    const data = jsonOf(frame)
    if (data !== undefined) return this.translation.event(data)
    if (frame[0] === COLON) return frame.toString()
    // A piece that cannot be read is missing from the answer, which must not look whole.
    if (!MEANS_NOTHING.has(dataOf(frame)?.trim()))
      throw malformedResponse('The upstream sent an event that is no JSON.')
    return ''
  }

  /** Sends the translated frames in one chunk; false if one could not be translated, and the stream has failed. */
  private forward<Part>(parts: Iterable<Part>, translate: (part: Part) => string): boolean {
    let text = ''
    let failure: GatewayError | undefined
    try {
      for (const part of parts) text += translate(part)
    } catch (error) {
      failure = this.errorOf(untranslatable(error))
    }
    if (text !== '') this.sink.data(Buffer.from(text))
    if (failure === undefined) return true
    this.isOver = true
    this.source.cancel()
    this.sink.fail(this.shown(failure))
    return false
  }

  /** With the frame that the client's dialect has for it. */
  private shown(error: GatewayError): GatewayError {
    const frame = this.translation.failure?.(error)
    return frame === undefined ? error : new GatewayError(error.kind, error.message, { ...error.details, frame })
  }
}

const COLON = 0x3a

/** Data of frames that say no more than that the stream goes on, or that it is over. */
const MEANS_NOTHING: ReadonlySet<string | undefined> = new Set([undefined, '', '[DONE]'])
