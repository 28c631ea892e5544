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
