import { estimateTokens } from '../server/generated-text.js'
import type { AudioFacts } from './audio-metadata.js'

export interface Segment {
  /** Without a leading space. */
  readonly text: string
  readonly startSeconds: number
  readonly endSeconds: number
}

export interface Transcript {
  readonly text: string
  readonly segments: readonly Segment[]
  readonly seconds: number
}

/** Hexadecimal digits of the file's SHA-1 in the transcript. */
export const CHECKSUM_DIGITS = 12

/**
 * What the simulator "hears": words derived from the audio received, so that a test can prove the bytes arrived
 * unchanged, e.g. `The audio has checksum 0123456789ab. It lasts 3.20 seconds.`
 */
export function transcribe(facts: AudioFacts, task: 'transcribe' | 'translate'): Transcript {
  const subject = task === 'translate' ? 'The translated audio' : 'The audio'
  const checksum = facts.sha1.slice(0, CHECKSUM_DIGITS)
  const sentences = [`${subject} has checksum ${checksum}.`, `It lasts ${facts.seconds.toFixed(2)} seconds.`]
  return { text: sentences.join(' '), segments: spread(sentences, 0, facts.seconds), seconds: facts.seconds }
}

/** Words without punctuation, timed evenly by their length. */
export function timedWords(transcript: Transcript): readonly Segment[] {
  return transcript.segments.flatMap((segment) => {
    const words = segment.text.split(' ').map((word) => word.replace(/[.,!?]+$/, ''))
    return spread(words, segment.startSeconds, segment.endSeconds)
  })
}

function spread(texts: readonly string[], startSeconds: number, endSeconds: number): Segment[] {
  const total = texts.reduce((sum, text) => sum + text.length, 0)
  let before = 0
  const at = (characters: number): number => round(startSeconds + ((endSeconds - startSeconds) * characters) / total)
  return texts.map((text) => {
    const start = before
    before += text.length
    return { text, startSeconds: at(start), endSeconds: at(before) }
  })
}

function round(seconds: number): number {
  return Math.round(seconds * 100) / 100
}

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

/** `usage` of the models billed by token: a number of audio tokens per minute, plus the tokens of the texts. */
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
