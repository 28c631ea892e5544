import type { CallLog, Usage, UsageMeter } from '../core/request-context.js'
import type { AudioFormat } from './audio-formats.js'
import type { SpeechEventSource } from './speech-response.js'

/** 24 kHz, 16 bits, one channel, whoever spoke. */
const BYTES_PER_SECOND = 48_000
const WAV_HEADER_BYTES = 44

/** Seconds of speech in so many bytes; undefined for formats of which nobody knows how dense they are. */
export function speechSeconds(format: AudioFormat, bytes: number): number | undefined {
  if (format !== 'pcm' && format !== 'wav') return undefined
  const samples = format === 'wav' ? Math.max(0, bytes - WAV_HEADER_BYTES) : bytes
  return Math.round((samples * 1000) / BYTES_PER_SECOND) / 1000
}

/** Apart from `audio_seconds`, which are heard, and charged for by providers who write them down. */
export const withSeconds = (units: Readonly<Record<string, number>>, seconds: number | undefined) =>
  seconds === undefined ? units : { ...units, spoken_seconds: seconds }

/** What a speech has used so far: the characters that its provider will charge for, and the audio that has arrived. */
export class SpeechMeter implements UsageMeter {
  constructor(
    private readonly log: CallLog,
    /** 0 = nothing yet. */
    private readonly characters: () => number,
    private readonly format: AudioFormat,
    /** Absent where the bytes leave as they are. */
    private readonly events?: SpeechEventSource,
  ) {}

  usageSoFar(): Usage | undefined {
    const characters = this.characters()
    if (characters === 0) return undefined
    const bytes = this.events?.audioBytes ?? this.log.bytesOut
    return {
      units: withSeconds({ input_characters: characters }, speechSeconds(this.format, bytes)),
      estimated: true,
    }
  }
}
