import { estimateTokens } from '../server/magic-text.js'
import { type Segment, timedWords, type Transcript } from './transcript.js'

/** Token ids of whisper's time marks: 50364 is 0 s, each further one 0.02 s. */
const TIME_ZERO_TOKEN = 50_364
const TIME_MARKS_PER_SECOND = 50

export interface VerboseOptions {
  readonly task: 'transcribe' | 'translate'
  readonly language: string
  readonly granularities: readonly string[]
}

/** The `verbose_json` of whisper. Without `segment` among the granularities there is no `segments` key. */
export function verboseJson(transcript: Transcript, options: VerboseOptions): Record<string, unknown> {
  const { granularities } = options
  const wantsSegments = granularities.length === 0 || granularities.includes('segment')
  const words = timedWords(transcript).map((word) => ({
    word: word.text,
    start: word.startSeconds,
    end: word.endSeconds,
  }))
  return {
    task: options.task,
    language: options.language,
    // Upstream computes in 32-bit floats, which shows: 1.7 is sent as 1.7000000476837158.
    duration: Math.fround(transcript.seconds),
    text: transcript.text,
    ...(wantsSegments ? { segments: transcript.segments.map(verboseSegment) } : {}),
    ...(granularities.includes('word') ? { words } : {}),
  }
}

function verboseSegment(segment: Segment, id: number): Record<string, unknown> {
  const timeToken = (seconds: number): number => TIME_ZERO_TOKEN + Math.round(seconds * TIME_MARKS_PER_SECOND)
  const tokens = segment.text.split(' ').map((word) => 1000 + word.length)
  return {
    id,
    seek: 0,
    start: segment.startSeconds,
    end: segment.endSeconds,
    text: ` ${segment.text}`,
    tokens: [timeToken(segment.startSeconds), ...tokens, timeToken(segment.endSeconds)],
    temperature: 0,
    avg_logprob: -0.2827,
    compression_ratio: 0.7837,
    no_speech_prob: 0.0009,
  }
}

/** SubRip text; ends with two blank lines as upstream's does. */
export function srt(transcript: Transcript): string {
  const cues = transcript.segments.map((segment, index) => `${index + 1}\n${cue(segment, ',')}`)
  return `${cues.join('\n\n')}\n\n\n`
}

export function vtt(transcript: Transcript): string {
  return `WEBVTT\n\n${transcript.segments.map((segment) => cue(segment, '.')).join('\n\n')}\n\n`
}

/** `usage` of the models billed by time: seconds rounded up. */
export function durationUsage(seconds: number): Record<string, unknown> {
  return { type: 'duration', seconds: Math.ceil(seconds) }
}

/** `usage` of the models billed by token: so many audio tokens to a minute, and whatever the texts take. */
export function tokenUsage(
  transcript: Transcript,
  prompt: string,
  audioTokensPerMinute: number,
): Record<string, unknown> {
  const audio = Math.round((transcript.seconds * audioTokensPerMinute) / 60)
  const text = estimateTokens(prompt)
  const output = estimateTokens(transcript.text)
  return {
    type: 'tokens',
    total_tokens: audio + text + output,
    input_tokens: audio + text,
    input_token_details: { text_tokens: text, audio_tokens: audio },
    output_tokens: output,
  }
}

function cue(segment: Segment, decimalMark: ',' | '.'): string {
  return `${clock(segment.startSeconds, decimalMark)} --> ${clock(segment.endSeconds, decimalMark)}\n${segment.text}`
}

function clock(seconds: number, decimalMark: ',' | '.'): string {
  const total = Math.round(seconds * 1000)
  const two = (value: number): string => String(Math.floor(value)).padStart(2, '0')
  const milliseconds = String(total % 1000).padStart(3, '0')
  return `${two(total / 3_600_000)}:${two((total / 60_000) % 60)}:${two((total / 1000) % 60)}${decimalMark}${milliseconds}`
}
