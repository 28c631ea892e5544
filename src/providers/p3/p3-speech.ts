import { Injectable } from '@nestjs/common'
import { type ByteSource, collect } from '../../core/byte-source.js'
import { GatewayError } from '../../core/gateway-error.js'
import type { UpstreamAnswer } from '../../core/upstream-answer.js'
import { spokenAnswer } from '../../dialects/spoken-answer.js'
import { GuardedClient } from '../../upstream/safe-fetch.js'
import { UpstreamClient } from '../../upstream/upstream-client.js'
import type { UpstreamResponse } from '../../upstream/upstream-exchange.js'
import { assertContentType, malformedAnswer } from '../../upstream/upstream-response.js'
import type { CallContext } from '../call-context.js'
import type { SpeechCall, SpeechProvider } from '../speech.contract.js'
import { MeasuredSource } from './measured-source.js'
import { P3Account } from './p3-account.js'
import { readEnvelope } from './p3-envelope.js'
import { p3Refusal } from './p3-error.js'
import { type P3Request, p3Request } from './p3-request.js'
import { P3AudioSource } from './p3-stream.js'
import { spool, SpooledSource } from './spooled-audio.js'

/** An answer with a link in the place of its audio. */
const MAXIMUM_LINK_ANSWER_BYTES = 65_536
/** Hours of speech in any format; the longest text makes less than one. */
const MAXIMUM_AUDIO_BYTES = 1024 * 1024 * 1024

interface Audio {
  readonly source: ByteSource
  /** Present where all of it is at hand. */
  readonly size?: number
}

/** `POST /v1/t2a_v2` at P3: hexadecimal audio in events, or in one JSON object, or behind a link. */
@Injectable()
export class P3SpeechProvider implements SpeechProvider {
  constructor(
    private readonly client: UpstreamClient,
    private readonly guarded: GuardedClient,
  ) {}

  async speak({ body: { fields } }: SpeechCall, context: CallContext): Promise<UpstreamAnswer> {
    const request = p3Request(fields, context)
    const response = await this.send(request, context)
    if (response.status !== 200) throw await p3Refusal(response, context)
    assertContentType(response, /^(?!text\/html)/)
    const account = new P3Account(fields.input, context)
    const { source, size } = await this.audioIn(response, request, account, context)
    const { format, sentAs, fallback } = request
    // A length is said only where the bytes leave as they are.
    const isSized = size !== undefined && format === sentAs && fields.stream_format !== 'sse'
    const answer = await spokenAnswer(
      {
        source,
        format,
        sentAs,
        ...(fallback === undefined ? {} : { fallback }),
        usage: account.usage,
        characters: account.characters,
        call: context.call,
        headers: { ...account.headers, ...(isSized ? { 'content-length': String(size) } : {}) },
      },
      fields.stream_format,
    )
    account.noteTrace()
    return answer
  }

  private async send({ body, streamed }: P3Request, context: CallContext): Promise<UpstreamResponse> {
    const { call, credentials, deadlineAtMs, options, target } = context
    const { groupId } = options
    const query = typeof groupId === 'string' ? `?GroupId=${encodeURIComponent(groupId)}` : ''
    const headers = ['authorization', `Bearer ${credentials}`, 'content-type', 'application/json']
    headers.push('accept', streamed ? 'text/event-stream' : 'application/json')
    const request = { method: 'POST', path: `/v1/t2a_v2${query}`, headers, body } as const
    const response = await this.client.send(request, target, call, deadlineAtMs)
    // The body says it as well, where there is one that can be read.
    const traceId = response.headers['trace-id']
    if (typeof traceId === 'string') call.log.upstreamRequestId = traceId
    return response
  }

  private async audioIn(
    { body }: UpstreamResponse,
    request: P3Request,
    account: P3Account,
    context: CallContext,
  ): Promise<Audio> {
    if (request.linked) return { source: await this.linkedAudio(body, account, context) }
    const source = new P3AudioSource(body, account.read)
    if (request.streamed) return { source }
    // The link to the subtitles stands behind the audio and leaves before it.
    const file = await spool(source, MAXIMUM_AUDIO_BYTES)
    return { source: new SpooledSource(file, context.call), size: file.size }
  }

  private async linkedAudio(body: ByteSource, account: P3Account, context: CallContext): Promise<ByteSource> {
    const envelope = readEnvelope((await collect(body, MAXIMUM_LINK_ANSWER_BYTES, noLink)).toString())
    account.read(envelope)
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

  private async fetchLink(url: string, { call, deadlineAtMs, target }: CallContext): Promise<UpstreamResponse> {
    try {
      const { timeouts } = target
      return await this.guarded.get(url, { call, deadlineAtMs, timeouts, maximumBytes: MAXIMUM_AUDIO_BYTES })
    } catch (error) {
      throw error instanceof GatewayError && error.kind === 'caller_left' ? error : linkFailed(error)
    }
  }
}

/** Storage that has lost a file answers with a page or a document of its own, some with status 200. */
const isText = ({ headers }: UpstreamResponse): boolean =>
  /^(?:text\/|application\/(?:json|xml))/i.test(String(headers['content-type'] ?? ''))

const noLink = (): GatewayError => malformedAnswer('The upstream did not answer with a link to the audio.')

const linkFailed = (cause: unknown): GatewayError =>
  new GatewayError('upstream_failed', 'The audio that the upstream made could not be fetched.', {
    cause: cause instanceof GatewayError ? (cause.details.cause ?? cause) : cause,
    // The speech was made, and billed; storage that has lost a file says little about the channel.
    attempt: { phase: 'sent', channelFault: true },
    retryable: false,
  })
