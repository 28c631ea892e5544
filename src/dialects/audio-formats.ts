/** The specification's table of audio formats: `response_format` → Content-Type. A test compares it with docs/spec.md. */
export const AUDIO_FORMATS = {
  mp3: 'audio/mpeg',
  wav: 'audio/wav',
  aac: 'audio/aac',
  flac: 'audio/flac',
  opus: 'audio/opus',
  pcm: 'audio/pcm',
} as const satisfies Record<string, string>

export type AudioFormat = keyof typeof AUDIO_FORMATS

export const DEFAULT_AUDIO_FORMAT: AudioFormat = 'mp3'

/** The format that `response_format` asks for; the default when it asks for none, or for one that does not exist. */
export const requestedFormat = (format: string | null | undefined): AudioFormat =>
  format != null && isAudioFormat(format) ? format : DEFAULT_AUDIO_FORMAT

const isAudioFormat = (format: string): format is AudioFormat => Object.hasOwn(AUDIO_FORMATS, format)
