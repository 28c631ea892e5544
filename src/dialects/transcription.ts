import { peek, ProviderResponse } from '../core/byte-stream.js'
import { GatewayError } from '../core/errors.js'
import { JsonBody } from '../core/json-body.js'
import type { Units, Usage, UsageEstimator, UsageReader } from '../core/request-context.js'
import type { MultipartField, UploadedFile } from '../core/spooled-file.js'
import { reportedUsage } from '../core/usage.js'
import { isRecord } from '../core/validation-rules.js'
import { type EncodedMultipart, encodeMultipart, type MultipartPart } from '../upstream/multipart-encoder.js'
import type { FrameCounter } from '../upstream/sse-relay.js'
import type { UpstreamResponse } from '../upstream/exchange.js'
import { assertContentType, type HeaderAllowList, jsonResponse } from '../upstream/upstream-response.js'

/** `text`, `srt` and `vtt` are all sent as plain text, as OpenAI does: SDKs parse anything declared as JSON. */
export const PLAIN_TEXT = 'text/plain; charset=utf-8'

const CHECKED_TEXT_BYTES = 1024 * 1024

/** The specification: audio costs about 1,000 audio tokens per minute. */
const AUDIO_TOKENS_PER_MINUTE = 1000
const CHARACTERS_PER_TOKEN = 4

/** A transcript as text, unchanged; an HTML page instead is refused. */
export async function textTranscript(
  response: UpstreamResponse,
  headers: HeaderAllowList,
  usage: UsageReader,
): Promise<ProviderResponse> {
  assertContentType(response, /^(?:text\/(?!html)|application\/x-subrip)/)
  const held = await peek(response.body, { bytes: CHECKED_TEXT_BYTES })
  const kept = { ...headers.pick(response.headers), 'content-type': PLAIN_TEXT }
  return new ProviderResponse(response.status, kept, held.complete ?? held, usage)
}

interface TranscriptRules {
  readonly durationSeconds: number | undefined
  /** Class G responses have token usage (specification: Responses); an estimate is added if it is missing. */
  readonly needsTokenUsage: boolean
}

/** A transcript as JSON, byte for byte, except for a usage object that the specification demands. */
export async function jsonTranscript(
  response: UpstreamResponse,
  headers: HeaderAllowList,
  { durationSeconds, needsTokenUsage }: TranscriptRules,
): Promise<ProviderResponse> {
  const { response: answer, value } = await jsonResponse(response, headers)
  const reported = reportedUsage(value?.['usage'])
  const usage = new TranscriptUsage(reported, durationSeconds)
  const lacksUsage = needsTokenUsage && value !== undefined && value['usage'] == null
  if (!lacksUsage || durationSeconds === undefined || !Buffer.isBuffer(answer.body)) {
    return new ProviderResponse(answer.status, answer.headers, answer.body, usage)
  }
  const { text } = value
  const estimate = estimatedTokens(durationSeconds, typeof text === 'string' ? text : '')
  return withUsage(answer, answer.body, estimate)
}

/** Usage of a transcript: reported by the upstream, otherwise the duration of the file. */
export class TranscriptUsage implements UsageReader {
  readonly reportedUsage: Usage | undefined

  constructor(
    private readonly reported: Usage | undefined,
    private readonly durationSeconds: number | undefined,
  ) {
    this.reportedUsage =
      reported ??
      (durationSeconds === undefined ? undefined : { units: { audio_seconds: durationSeconds }, estimated: false })
  }

  /** The duration, in addition to the reported usage. */
  countedUnits(): Units | undefined {
    const { durationSeconds, reported } = this
    return reported === undefined || durationSeconds === undefined ? undefined : { audio_seconds: durationSeconds }
  }
}

interface TokenEstimate {
  readonly total_tokens: number
  readonly input_tokens: number
  readonly output_tokens: number
}

const audioTokens = (durationSeconds: number): number => Math.ceil((durationSeconds / 60) * AUDIO_TOKENS_PER_MINUTE)

function estimatedTokens(durationSeconds: number, text: string): TokenEstimate {
  const input = audioTokens(durationSeconds)
  const output = Math.ceil(text.length / CHARACTERS_PER_TOKEN)
  return { total_tokens: input + output, input_tokens: input, output_tokens: output }
}

function withUsage(answer: ProviderResponse, bytes: Buffer, estimate: TokenEstimate): ProviderResponse {
  const usage = {
    type: 'tokens',
    total_tokens: estimate.total_tokens,
    input_tokens: estimate.input_tokens,
    input_token_details: { text_tokens: 0, audio_tokens: estimate.input_tokens },
    output_tokens: estimate.output_tokens,
    estimated: true,
  }
  const reader: UsageReader = { reportedUsage: { units: { ...estimate }, estimated: true } }
  const body = edited(bytes, JSON.stringify(usage))
  return body === undefined
    ? new ProviderResponse(answer.status, answer.headers, bytes, reader)
    : new ProviderResponse(answer.status, { ...answer.headers, 'x-gateway-usage': 'estimated' }, body, reader)
}

/** Undefined for a response outside the JSON rules for request bodies: a paid transcript is not refused for its usage. */
function edited(bytes: Buffer, usage: string): Buffer | undefined {
  try {
    return JsonBody.parse(bytes, { source: 'upstream' }).edited({ usage })
  } catch {
    return undefined
  }
}

/** Estimated usage of a streamed transcript until `transcript.text.done` comes: all of the audio, and a token per delta. */
export class TranscriptUsageEstimator implements UsageEstimator {
  constructor(
    private readonly durationSeconds: number | undefined,
    private readonly deltas: Pick<FrameCounter, 'count'>,
  ) {}

  estimate(): Usage {
    const output = this.deltas.count
    if (this.durationSeconds === undefined) return { units: { output_tokens: output }, estimated: true }
    const input = audioTokens(this.durationSeconds)
    return {
      units: {
        total_tokens: input + output,
        input_tokens: input,
        input_token_details: { text_tokens: 0, audio_tokens: input },
        output_tokens: output,
      },
      estimated: true,
    }
  }

  /** All of it, and the length that it is reckoned from. */
  countedUnits(): Units {
    const { units } = this.estimate()
    return this.durationSeconds === undefined ? units : { ...units, audio_seconds: this.durationSeconds }
  }
}

interface TranscriptionForm {
  readonly file: UploadedFile
  /** Detected by the bytes, not by the client's file name. */
  readonly extension: string
  readonly contentType: string
  readonly fields: readonly MultipartField[]
}

/** Fields to set (replaced in place, otherwise appended) or, with undefined, to remove. */
export type FormEdits = Readonly<Record<string, string | undefined>>

/**
 * The caller's form for an upstream: the same parts in the same order and spelling, the file under a safe generated
 * name whose extension fits the bytes, as many upstreams judge a file by its name.
 */
export function transcriptionForm(form: TranscriptionForm, edits: FormEdits): EncodedMultipart {
  const parts: MultipartPart[] = []
  const present = new Set<string>()
  for (const { name, value } of form.fields) {
    present.add(name)
    if (!Object.hasOwn(edits, name)) parts.push({ name, value })
    else if (edits[name] !== undefined) parts.push({ name, value: edits[name] })
  }
  const before = form.fields.slice(0, form.file.fieldIndex).filter(({ name }) => !isLeftOut(edits, name)).length
  parts.splice(before, 0, {
    name: 'file',
    filename: `audio.${form.extension}`,
    contentType: form.contentType,
    file: form.file.spool,
  })
  for (const [name, value] of Object.entries(edits)) {
    if (value !== undefined && !present.has(name)) parts.push({ name, value })
  }
  return encodeMultipart(parts)
}

const isLeftOut = (edits: FormEdits, name: string): boolean => Object.hasOwn(edits, name) && edits[name] === undefined

/** One stretch of speech; times in seconds from the start of the audio. */
export interface SubtitleSegment {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** The segments of an upstream's verbose_json answer. Throws `upstream_failed` when they are not of that shape. */
export function readVerboseSegments(json: unknown): readonly SubtitleSegment[] {
  const segments = isRecord(json) ? json['segments'] : undefined
  if (!Array.isArray(segments)) throw unexpectedShape()
  return segments.map((segment: unknown) => {
    if (!isRecord(segment)) throw unexpectedShape()
    const { start, end, text } = segment
    if (!isSeconds(start) || !isSeconds(end) || typeof text !== 'string') throw unexpectedShape()
    return { start, end, text }
  })
}

export type SubtitleFormat = 'srt' | 'vtt'

/** Subtitles from an upstream's verbose_json answer. Throws `upstream_failed` when it has no usable segments. */
export function renderSubtitles(format: SubtitleFormat, answer: unknown): string {
  const segments = readVerboseSegments(answer)
  return format === 'srt' ? renderSrt(segments) : renderVtt(segments)
}

/** SubRip text. Ends in two blank lines, as the speech models' own answers do. */
export function renderSrt(segments: readonly SubtitleSegment[]): string {
  const cues = segments.map((segment, index) => `${index + 1}\n${cueOf(segment, ',')}\n`)
  return `${cues.join('')}\n`
}

/** WebVTT text. Ends in one blank line, as the speech models' own answers do. */
export function renderVtt(segments: readonly SubtitleSegment[]): string {
  return `WEBVTT\n\n${segments.map((segment) => `${cueOf(segment, '.')}\n`).join('')}`
}

function cueOf({ start, end, text }: SubtitleSegment, separator: ',' | '.'): string {
  const startMs = toMilliseconds(start)
  const endMs = Math.max(startMs, toMilliseconds(end))
  return `${timestamp(startMs, separator)} --> ${timestamp(endMs, separator)}\n${cueText(text)}\n`
}

function toMilliseconds(seconds: number): number {
  return Math.max(0, Math.round(seconds * 1000))
}

function timestamp(milliseconds: number, separator: ',' | '.'): string {
  const seconds = Math.floor(milliseconds / 1000)
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60]
  const clock = [hours, minutes, seconds % 60].map((part) => String(part).padStart(2, '0')).join(':')
  return `${clock}${separator}${String(milliseconds % 1000).padStart(3, '0')}`
}

// A blank line would end the cue and an arrow would begin another one.
function cueText(text: string): string {
  const lines = text.split(/[\r\n]+/).map((line) => line.trim())
  return lines
    .filter((line) => line !== '')
    .join('\n')
    .replaceAll('-->', '->')
}

const isSeconds = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value)

function unexpectedShape(): GatewayError {
  return new GatewayError('upstream_failed', 'The upstream answered without usable segments.', {
    attempt: { phase: 'answered', channelError: true },
  })
}
