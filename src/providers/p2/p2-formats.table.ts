import { type AudioFormat, requestedFormat } from '../../dialects/audio-formats.js'

export interface P2Format {
  /** What the upstream is asked for; it does not stream wav. */
  readonly encoding: 'mp3' | 'ogg_opus' | 'pcm'
  /** What its bytes are, in the caller's words. */
  readonly format: AudioFormat
  readonly sentAs: AudioFormat
  readonly fallback?: AudioFormat
}

const MP3 = { encoding: 'mp3', format: 'mp3', sentAs: 'mp3' } as const

const P2_FORMATS = {
  mp3: MP3,
  opus: { encoding: 'ogg_opus', format: 'opus', sentAs: 'opus' },
  aac: { ...MP3, fallback: 'mp3' },
  flac: { ...MP3, fallback: 'mp3' },
  wav: { encoding: 'pcm', format: 'pcm', sentAs: 'wav' },
  pcm: { encoding: 'pcm', format: 'pcm', sentAs: 'pcm' },
} as const satisfies Readonly<Record<AudioFormat, P2Format>>

/** How a requested `response_format` is spoken; the default when none was asked for. */
export const p2Format = (requested: string | null | undefined): P2Format => P2_FORMATS[requestedFormat(requested)]
