import { GatewayError } from '../core/errors.js'

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

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function isSeconds(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}

function unexpectedShape(): GatewayError {
  return new GatewayError('upstream_failed', 'The upstream answered without usable segments.', {
    attempt: { phase: 'answered', channelError: true },
  })
}
