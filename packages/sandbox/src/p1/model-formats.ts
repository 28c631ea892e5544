import type { P1Family } from './p1-models.js'

/** Which answers each family of transcription models gives (section 3.2 of the audio notes), and its time limits. */
export const TRANSCRIPTION_FAMILIES: Readonly<
  Partial<Record<P1Family, { formats: readonly string[]; streams: boolean; maxSeconds: number }>>
> = {
  whisper: {
    formats: ['json', 'text', 'srt', 'vtt', 'verbose_json'],
    streams: false,
    maxSeconds: Number.POSITIVE_INFINITY,
  },
  transcribe: { formats: ['json', 'text'], streams: true, maxSeconds: 1500 },
  diarize: { formats: ['json', 'text', 'diarized_json'], streams: true, maxSeconds: 1400 },
  'gpt-transcribe': { formats: ['json'], streams: true, maxSeconds: 1500 },
}

const COMMON_PARTS = ['file', 'model', 'language', 'prompt', 'response_format', 'temperature', 'stream'] as const

/** Part names each family knows; whisper knows the newer ones too and ignores or judges them. */
export const TRANSCRIPTION_PARTS: Readonly<Partial<Record<P1Family, readonly string[]>>> = {
  whisper: [...COMMON_PARTS, 'include[]', 'timestamp_granularities[]', 'chunking_strategy'],
  transcribe: [...COMMON_PARTS, 'include[]', 'timestamp_granularities[]', 'chunking_strategy'],
  diarize: [
    ...COMMON_PARTS,
    'include[]',
    'timestamp_granularities[]',
    'chunking_strategy',
    'known_speaker_names[]',
    'known_speaker_references[]',
  ],
  'gpt-transcribe': [...COMMON_PARTS, 'languages[]', 'keywords[]', 'chunking_strategy'],
}

export const TRANSLATION_PARTS = ['file', 'model', 'prompt', 'response_format', 'temperature'] as const
