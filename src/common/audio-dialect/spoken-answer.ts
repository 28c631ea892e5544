import { eventAnswer, fileAnswer } from '../http/answers.js'
import type { ByteSource } from '../http/byte-source.js'
import type { UpstreamAnswer } from '../http/upstream-answer.js'
import { AUDIO_FORMATS, type AudioFormat } from './audio-formats.js'
import { SpeechEventSource, type SpeechUsage } from './speech-event-source.js'
import { WavSource } from './wav-source.js'

/** Speech as it comes from an upstream that has begun to speak, or is about to. */
export interface SpokenAudio {
  readonly source: ByteSource
  /** What the source's bytes are. */
  readonly format: AudioFormat
  /** What the caller receives; `wav` from `pcm` gets its header here, everything else equals `format`. */
  readonly sentAs: AudioFormat
  /** Set when the caller asked for a format that the upstream does not speak, and receives this one. */
  readonly fallback?: AudioFormat
  /** Asked once the audio has ended, for the last event. */
  readonly usage: () => SpeechUsage
  readonly headers?: Readonly<Record<string, string>>
}

/** 16 bits, one channel; the header of a WAV stream has an even length as well. */
export const PCM_SAMPLE_BYTES = 2

/**
 * The one answer of speech, whoever spoke: raw bytes whose Content-Type says what they are, or the events of
 * `stream_format: sse`. What fails before the first byte of audio rejects, so that another channel may be tried.
 */
export function spokenAnswer(audio: SpokenAudio, streamFormat: string | null | undefined): Promise<UpstreamAnswer> {
  const { source, format, sentAs, fallback } = audio
  const headers = { ...audio.headers, ...(fallback === undefined ? {} : { 'x-gateway-audio-fallback': fallback }) }
  const sent = format === 'pcm' && sentAs === 'wav' ? new WavSource(source) : source
  return streamFormat === 'sse'
    ? eventAnswer(200, headers, new SpeechEventSource(sent, audio.usage, format === 'pcm' ? PCM_SAMPLE_BYTES : 1))
    : fileAnswer(200, { ...headers, 'content-type': AUDIO_FORMATS[sentAs] }, sent)
}
