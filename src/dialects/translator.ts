import { type ByteSink, type ByteSource, collect, ProviderResponse } from '../core/byte-stream.js'
import { GatewayError } from '../core/errors.js'
import type { JsonBody } from '../core/json-body.js'
import { FrameAssembler, framesOf, jsonOf } from '../core/sse.js'
import { isRecord } from '../core/validation-rules.js'
import { eventResponse, malformedResponse } from '../upstream/upstream-response.js'

/**
 * Translates requests from a client's dialect to an upstream's, and responses back. Pure: it sends
 * nothing and keeps nothing between requests. Not used if both sides have the same dialect: the bytes are relayed.
 */
export interface Translator<Fields extends object> {
  /**
   * The request in the upstream's dialect. Throws `invalid_request` with code `unsupported_value`, naming the client's own
   * field, for values that the upstream's dialect lacks.
   */
  request(body: JsonBody<Fields>, upstreamModel: string): Buffer
  /** A whole response in the client's dialect. Throws `upstream_failed` if the upstream's lacks a required member. */
  response(answer: Readonly<Record<string, unknown>>, fields: Fields): object
  /** A new translation of one event stream. */
  events(fields: Fields): EventTranslation
  /** An error with the client's name of its field. */
  error(error: GatewayError): GatewayError
}

/** The state of one stream's translation. */
export interface EventTranslation {
  /** The client's frames, complete with their empty lines, for one event of the upstream; '' for none. May throw as `response`. */
  event(data: Readonly<Record<string, unknown>>): string
  /** Final frames of the client's stream; called once, after the upstream's stream was complete. */
  end(): string
}

/** Limit of a whole response, which must be read to be translated; a larger one is the upstream's failure. */
const MAXIMUM_RESPONSE_BYTES = 16 * 1024 * 1024

/**
 * Translates a request, sends it and translates the response. `send` returns the upstream's response in its own dialect, checked
 * for completeness by the relay of that dialect; its usage is kept.
 */
export async function translated<Fields extends object>(
  translator: Translator<Fields>,
  body: JsonBody<Fields>,
  upstreamModel: string,
  send: (request: Buffer) => Promise<ProviderResponse>,
): Promise<ProviderResponse> {
  const response = await send(translator.request(body, upstreamModel)).catch(failedWith(translator))
  return isEventStream(response)
    ? await translatedStream(response, translator, body.fields)
    : await translatedWhole(response, translator, body.fields)
}

const isEventStream = ({ headers }: ProviderResponse): boolean =>
  headers['content-type']?.startsWith('text/event-stream') === true

async function translatedWhole<Fields extends object>(
  { status, headers, body, usage }: ProviderResponse,
  translator: Translator<Fields>,
  fields: Fields,
): Promise<ProviderResponse> {
  const bytes = Buffer.isBuffer(body)
    ? body
    : await collect(body, MAXIMUM_RESPONSE_BYTES, tooLarge).catch(failedWith(translator))
  const answer = Buffer.from(JSON.stringify(translator.response(parsed(bytes), fields)))
  return new ProviderResponse(status, { ...headers, 'content-type': 'application/json' }, answer, usage)
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

async function translatedStream<Fields extends object>(
  { status, headers, body, usage }: ProviderResponse,
  translator: Translator<Fields>,
  fields: Fields,
): Promise<ProviderResponse> {
  if (Buffer.isBuffer(body)) throw malformedResponse('The upstream answered with an event stream that had ended.')
  const events = new TranslatedEvents(body, begun(translator, fields, body), (error) =>
    translatedError(translator, error),
  )
  return await eventResponse(status, headers, events, usage)
}

/** An upstream whose stream cannot be translated is aborted. */
function begun<Fields extends object>(translator: Translator<Fields>, fields: Fields, body: ByteSource) {
  try {
    return translator.events(fields)
  } catch (error) {
    body.cancel()
    throw error
  }
}

/** The upstream's error body is in its own dialect: the client gets a rendered error instead. */
function translatedError<Fields extends object>(translator: Translator<Fields>, error: GatewayError): GatewayError {
  const kept = Object.entries(error.details).filter(([name]) => name !== 'relayed' && name !== 'frame')
  return translator.error(new GatewayError(error.kind, error.message, Object.fromEntries(kept)))
}

const failedWith =
  <Fields extends object>(translator: Translator<Fields>) =>
  (error: unknown): never => {
    throw error instanceof GatewayError ? translatedError(translator, error) : error
  }

const tooLarge = (): GatewayError => malformedResponse('The upstream answered with more than can be translated.')

/** An event stream in another dialect, frame by frame; comments, such as keep-alive, pass as they are. */
class TranslatedEvents implements ByteSource, ByteSink {
  private sink!: ByteSink
  private readonly frames = new FrameAssembler()
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

  data(chunk: Buffer): void {
    const frames = this.isOver ? undefined : this.frames.add(chunk)
    if (frames !== undefined) this.forward(framesOf(frames), (frame) => this.framesFor(frame))
  }

  end(): void {
    if (this.isOver || !this.forward([undefined], () => this.translation.end())) return
    this.isOver = true
    this.sink.end()
  }

  fail(error: GatewayError): void {
    if (this.isOver) return
    this.isOver = true
    this.sink.fail(this.errorOf(error))
  }

  private framesFor(frame: Buffer): string {
    const data = jsonOf(frame)
    if (data !== undefined) return this.translation.event(data)
    return frame[0] === COLON ? frame.toString() : ''
  }

  /** Sends the translated frames in one chunk; false if one could not be translated, and the stream has failed. */
  private forward<Part>(parts: Iterable<Part>, translate: (part: Part) => string): boolean {
    let text = ''
    let failure: GatewayError | undefined
    try {
      for (const part of parts) text += translate(part)
    } catch (error) {
      failure = error instanceof GatewayError ? this.errorOf(error) : notTranslatable(error)
    }
    if (text !== '') this.sink.data(Buffer.from(text))
    if (failure === undefined) return true
    this.isOver = true
    this.source.cancel()
    this.sink.fail(failure)
    return false
  }
}

const COLON = 0x3a

const notTranslatable = (cause: unknown): GatewayError =>
  new GatewayError('upstream_failed', 'The upstream sent an event that cannot be translated.', {
    attempt: { phase: 'answered', channelError: true },
    cause,
  })
