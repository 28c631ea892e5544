import type { Units, Usage, UsageReader } from '../../core/request-context.js'
import { estimateSpeechUsage, type SpeechUsage } from '../../dialects/speech-response.js'
import type { AttemptContext } from '../contract.js'
import { p3Failure } from './p3-error.js'
import { billedCharacters } from './p3-request.js'
import type { P3Envelope } from './p3-stream.js'

/** Proxies and clients may refuse a longer header. */
const MAXIMUM_LINK_CHARACTERS = 4096

/** Usage, trace id and subtitle link of one speech, for the log, the last event and the headers. */
export class P3ResponseMetadata implements UsageReader {
  private billedCharacters: number | undefined
  /** `billedCharacters` of the last envelope without a failure. */
  private accepted: number | undefined
  private audioMs: number | undefined
  private traceId: string | undefined
  private subtitleFile: string | undefined

  constructor(
    private readonly input: string,
    private readonly context: AttemptContext,
  ) {}

  /** Reads a response or an event. Throws the failure that it reports. */
  readonly read = (envelope: P3Envelope): void => {
    this.traceId = envelope.traceId ?? this.traceId
    this.billedCharacters = envelope.billedCharacters ?? this.billedCharacters
    this.audioMs = envelope.audioMs ?? this.audioMs
    this.subtitleFile = envelope.subtitleFile ?? this.subtitleFile
    this.recordTrace()
    if (envelope.code !== 0) throw p3Failure(envelope, this.context)
    if (this.billedCharacters !== undefined) this.accepted = this.billedCharacters
  }

  /** Estimated until P3 reports it, at the end: P3 bills the whole text. */
  readonly characters = (): number => this.billedCharacters ?? billedCharacters(this.input)

  get reportedUsage(): Usage | undefined {
    return this.accepted === undefined ? undefined : { units: { input_characters: this.accepted }, estimated: false }
  }

  countedUnits(): Units {
    return { input_characters: billedCharacters(this.input) }
  }

  readonly usage = (): SpeechUsage =>
    estimateSpeechUsage(this.input, {
      ...(this.billedCharacters === undefined ? {} : { characters: this.billedCharacters }),
      ...(this.audioMs === undefined ? {} : { audioMs: this.audioMs }),
    })

  /** The link to the subtitles, if a header can carry it. */
  get headers(): Readonly<Record<string, string>> {
    const { subtitleFile = '' } = this
    if (!URL.canParse(subtitleFile)) return {}
    const { protocol, href } = new URL(subtitleFile)
    const isLink = (protocol === 'https:' || protocol === 'http:') && href.length <= MAXIMUM_LINK_CHARACTERS
    return isLink ? { 'x-subtitle-url': href } : {}
  }

  /** P3's own request id takes precedence over that of the storage behind its links. */
  recordTrace(): void {
    if (this.traceId !== undefined) this.context.record.upstreamRequestId = this.traceId
  }
}
