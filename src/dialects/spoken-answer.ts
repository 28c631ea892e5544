import type { ByteSource } from '../core/byte-source.js'
import type { Call } from '../core/request-context.js'
import type { UpstreamAnswer } from '../core/upstream-answer.js'
import { eventAnswer, fileAnswer } from '../upstream/upstream-response.js'
import { AUDIO_FORMATS, type AudioFormat } from './audio-formats.js'
import { WavSource } from './speech-formats.js'
import { SpeechMeter } from './speech-meter.js'
import { SpeechEventSource, type SpeechUsage } from './speech-response.js'

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
  /** What its provider will charge for, as far as is known now, in characters; 0 = nothing yet. */
  readonly characters: () => number
  readonly headers?: Readonly<Record<string, string>>
  readonly call: Call
}

/** 16 bits, one channel; the header of a WAV stream has an even length as well. */
export const PCM_SAMPLE_BYTES = 2

/**
 * The one answer of speech, whoever spoke: raw bytes whose Content-Type says what they are, or the events of
 * `stream_format: sse`. What fails before the first byte of audio rejects, so that another channel may be tried.
 */
export async function spokenAnswer(
  audio: SpokenAudio,
  streamFormat: string | null | undefined,
): Promise<UpstreamAnswer> {
  const { call, characters, source, format, sentAs, fallback } = audio
  const headers = { ...audio.headers, ...(fallback === undefined ? {} : { 'x-gateway-audio-fallback': fallback }) }
  const sent = format === 'pcm' && sentAs === 'wav' ? new WavSource(source) : source
  const events =
    streamFormat === 'sse'
      ? new SpeechEventSource(sent, audio.usage, format === 'pcm' ? PCM_SAMPLE_BYTES : 1)
      : undefined
  const answer =
    events === undefined
      ? await fileAnswer(200, { ...headers, 'content-type': AUDIO_FORMATS[sentAs] }, sent)
      : await eventAnswer(200, headers, events)
  // Nothing was spoken where this was not reached.
  call.log.meter = new SpeechMeter(call.log, characters, sentAs, events)
  return answer
}
