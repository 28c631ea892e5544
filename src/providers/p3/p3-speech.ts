import { Injectable } from '@nestjs/common'
import { keyCredentials, voices } from '../../config/channel-schema.js'
import { identifier, settings } from '../../config/value-types.js'
import { type ByteSink, type ByteSource, collect, type ProviderResponse } from '../../core/byte-stream.js'
import { GatewayError } from '../../core/errors.js'
import { AUDIO_FORMAT_NAMES } from '../../dialects/speech-formats.js'
import { speechResponse } from '../../dialects/speech-response.js'
import { withoutEncodings } from '../../upstream/content-encoding.js'
import { SafeFetchClient } from '../../upstream/safe-fetch.js'
import type { UpstreamResponse } from '../../upstream/exchange.js'
import { UpstreamClient } from '../../upstream/upstream-client.js'
import { assertContentType, malformedResponse } from '../../upstream/upstream-response.js'
import type { AttemptContext, ProviderManifest, SpeechCall, SpeechProvider } from '../contract.js'
import { parseP3Error } from './p3-error.js'
import { P3_VOICES, type P3Request, p3Request } from './p3-request.js'
import { P3ResponseMetadata } from './p3-response-metadata.js'
import { spool, SpooledSource } from './p3-spool.js'
import { P3AudioSource, readEnvelope } from './p3-stream.js'

/** A body that must have at least as many bytes as were announced: a shorter one was cut off, even if it ended normally. */
export class MeasuredSource implements ByteSource, ByteSink {
  private sink!: ByteSink
  private receivedBytes = 0

  constructor(
    private readonly body: ByteSource,
    private readonly leastBytes: number,
    private readonly tooShort: (receivedBytes: number) => GatewayError,
  ) {}

  start(sink: ByteSink): void {
    this.sink = sink
    this.body.start(this)
  }

  pause(): void {
    this.body.pause()
  }

  resume(): void {
    this.body.resume()
  }

  cancel(): void {
    this.body.cancel()
  }

  data(chunk: Buffer): void {
    this.receivedBytes += chunk.length
    this.sink.data(chunk)
  }

  end(): void {
    if (this.receivedBytes < this.leastBytes) this.sink.fail(this.tooShort(this.receivedBytes))
    else this.sink.end()
  }

  fail(error: GatewayError): void {
    this.sink.fail(error)
  }
}

/** Limit of a response with a link instead of audio. */
const MAXIMUM_LINK_ANSWER_BYTES = 65_536
/** Hours of speech in any format; the longest text makes less than one. */
const MAXIMUM_AUDIO_BYTES = 1024 * 1024 * 1024

interface Audio {
  readonly source: ByteSource
  /** Present if all of it is available. */
  readonly size?: number
}

/** `POST /v1/t2a_v2` at P3: hexadecimal audio in events, or in one JSON object, or behind a link. */
@Injectable()
export class P3SpeechProvider implements SpeechProvider {
  constructor(
    private readonly client: UpstreamClient,
    private readonly guarded: SafeFetchClient,
  ) {}

  async speak({ body: { fields } }: SpeechCall, context: AttemptContext): Promise<ProviderResponse> {
    const request = p3Request(fields, context)
    const response = await this.send(request, context)
    if (response.status !== 200) throw await parseP3Error(response, context)
    assertContentType(response, /^(?!text\/html)/)
    const metadata = new P3ResponseMetadata(fields.input, context)
    context.record.usage = metadata
    const { source, size } = await this.audioIn(response, request, metadata, context)
    const { format, sentAs, fallback } = request
    // A content length is sent only if the bytes are relayed unchanged.
    const isSized = size !== undefined && format === sentAs && fields.stream_format !== 'sse'
    const answer = await speechResponse(
      {
        source,
        format,
        sentAs,
        ...(fallback === undefined ? {} : { fallback }),
        usage: metadata.usage,
        characters: metadata.characters,
        reported: metadata,
        headers: { ...metadata.headers, ...(isSized ? { 'content-length': String(size) } : {}) },
      },
      fields.stream_format,
    )
    metadata.recordTrace()
    return answer
  }

  private async send({ body, streamed }: P3Request, context: AttemptContext): Promise<UpstreamResponse> {
    const { credentials, deadlineAtMs, options, record, target } = context
    const { groupId } = options
    const query = typeof groupId === 'string' ? `?GroupId=${encodeURIComponent(groupId)}` : ''
    const headers = ['authorization', `Bearer ${credentials}`, 'content-type', 'application/json']
    headers.push('accept', streamed ? 'text/event-stream' : 'application/json')
    const request = { method: 'POST', path: `/v1/t2a_v2${query}`, headers, body } as const
    const response = await this.client.send(request, target, context, deadlineAtMs)
    // Also in the body, if that can be read.
    const traceId = response.headers['trace-id']
    if (typeof traceId === 'string') record.upstreamRequestId = traceId
    return response
  }

  private async audioIn(
    { body }: UpstreamResponse,
    request: P3Request,
    metadata: P3ResponseMetadata,
    context: AttemptContext,
  ): Promise<Audio> {
    if (request.linked) return { source: await this.linkedAudio(body, metadata, context) }
    const source = new P3AudioSource(body, metadata.read)
    if (request.streamed) return { source }
    // The link to the subtitles follows the audio but is sent in a header: the audio has to be spooled.
    const file = await spool(source, MAXIMUM_AUDIO_BYTES)
    return { source: new SpooledSource(file, context.disconnect), size: file.size }
  }

  private async linkedAudio(
    body: ByteSource,
    metadata: P3ResponseMetadata,
    context: AttemptContext,
  ): Promise<ByteSource> {
    const envelope = readEnvelope((await collect(body, MAXIMUM_LINK_ANSWER_BYTES, noLink)).toString())
    metadata.read(envelope)
    const { audio: link, audioBytes = 0 } = envelope
    if (link === '') throw noLink()
    const response = await this.fetchLink(link, context)
    if (response.status === 200 && !isText(response)) {
      const tooShort = (bytes: number): GatewayError =>
        linkFailed(new Error(`the link gave ${bytes} bytes of ${audioBytes}`))
      return new MeasuredSource(response.body, audioBytes, tooShort)
    }
    response.body.cancel()
    throw linkFailed(new Error(`the link answered with status ${response.status}`))
  }

  private async fetchLink(url: string, context: AttemptContext): Promise<UpstreamResponse> {
    try {
      const { deadlineAtMs, target } = context
      const { timeouts } = target
      const request = { context, deadlineAtMs, timeouts, maximumBytes: MAXIMUM_AUDIO_BYTES }
      return withoutEncodings(await this.guarded.get(url, request), context.disconnect)
    } catch (error) {
      throw error instanceof GatewayError && error.kind === 'caller_left' ? error : linkFailed(error)
    }
  }
}

/** Storage that has lost a file responds with an HTML or XML page, in some cases with status 200. */
const isText = ({ headers }: UpstreamResponse): boolean =>
  /^(?:text\/|application\/(?:json|xml))/i.test(String(headers['content-type'] ?? ''))

const noLink = (): GatewayError => malformedResponse('The upstream did not answer with a link to the audio.')

const linkFailed = (cause: unknown): GatewayError =>
  new GatewayError('upstream_failed', 'The audio that the upstream made could not be fetched.', {
    cause: cause instanceof GatewayError ? (cause.details.cause ?? cause) : cause,
    // The speech was made, and billed; a lost file says little about the channel.
    attempt: { phase: 'sent', channelError: true },
    retryable: false,
  })

/** Without aac, in whose place P3 gives mp3. */
const P3_FORMAT_NAMES = AUDIO_FORMAT_NAMES.filter((name) => name !== 'aac')

const options = settings({
  voices: voices.exactOptional(),
  groupId: identifier.exactOptional().describe("p3: the account's group, which only older hosts want"),
})

/** P3, speech with emotion over HTTP. */
export const P3_MANIFEST: ProviderManifest = {
  name: 'p3',
  credentialsSchema: keyCredentials,
  optionsSchema: options,
  capabilities: { speech: P3SpeechProvider },
  defaultModelClass: 'tts',
  offers: { tts: { voices: Object.keys(P3_VOICES), formats: P3_FORMAT_NAMES } },
  models: {
    tts: [
      'speech-2.5-hd-preview',
      'speech-2.5-turbo-preview',
      'speech-02-hd',
      'speech-02-turbo',
      'speech-01-hd',
      'speech-01-turbo',
    ],
  },
}
