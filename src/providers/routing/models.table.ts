import type { ModelClass, ModelRow, ProviderName } from '../../config/gateway-config.js'

const rows = (modelClass: ModelClass, providers: readonly ProviderName[], ids: readonly string[]): ModelRow[] =>
  ids.map((id) => ({ id, class: modelClass, providers }))

/**
 * The built-in catalogue: the public identifiers of each class of the specification, so that a user of an official SDK
 * needs no configuration. Operators add rows with `models:`; an operator's row replaces the built-in one of its id.
 */
export const BUILT_IN_MODELS: readonly ModelRow[] = [
  ...rows('tts', ['p1'], ['tts-1', 'tts-1-hd', 'tts-1-1106', 'tts-1-hd-1106']),
  ...rows('tts-style', ['p1'], ['gpt-4o-mini-tts', 'gpt-4o-mini-tts-2025-03-20', 'gpt-4o-mini-tts-2025-12-15']),
  ...rows(
    'tts',
    ['p3'],
    [
      'speech-2.5-hd-preview',
      'speech-2.5-turbo-preview',
      'speech-02-hd',
      'speech-02-turbo',
      'speech-01-hd',
      'speech-01-turbo',
    ],
  ),
  ...rows('stt-standard', ['p1', 'p4'], ['whisper-1']),
  ...rows('stt-standard', ['p4'], ['whisper-large-v3', 'whisper-large-v3-turbo']),
  ...rows(
    'stt-generation',
    ['p1'],
    [
      'gpt-4o-transcribe',
      'gpt-4o-mini-transcribe',
      'gpt-4o-mini-transcribe-2025-03-20',
      'gpt-4o-mini-transcribe-2025-12-15',
      'gpt-transcribe',
    ],
  ),
  ...rows('stt-diarize', ['p1'], ['gpt-4o-transcribe-diarize']),
  ...rows(
    'chat',
    ['p1'],
    [
      'gpt-3.5-turbo',
      'gpt-4',
      'gpt-4-turbo',
      'gpt-4.1',
      'gpt-4.1-mini',
      'gpt-4.1-nano',
      'gpt-4o',
      'gpt-4o-2024-08-06',
      'gpt-4o-2024-11-20',
      'gpt-4o-mini',
      'gpt-4o-mini-2024-07-18',
      'gpt-5',
      'gpt-5-mini',
      'gpt-5-nano',
      'o1',
      'o3',
      'o3-mini',
      'o4-mini',
    ],
  ),
  ...rows(
    'chat-audio',
    ['p1'],
    [
      'gpt-4o-audio-preview',
      'gpt-4o-audio-preview-2024-10-01',
      'gpt-4o-audio-preview-2024-12-17',
      'gpt-4o-audio-preview-2025-06-03',
      'gpt-4o-mini-audio-preview',
      'gpt-4o-mini-audio-preview-2024-12-17',
      'gpt-audio',
      'gpt-audio-2025-08-28',
      'gpt-audio-1.5',
      'gpt-audio-mini',
      'gpt-audio-mini-2025-10-06',
      'gpt-audio-mini-2025-12-15',
    ],
  ),
  ...rows(
    'messages',
    ['m1'],
    [
      'claude-haiku-4-5',
      'claude-haiku-4-5-20251001',
      'claude-sonnet-4-5',
      'claude-sonnet-4-5-20250929',
      'claude-sonnet-4-6',
      'claude-sonnet-5',
      'claude-opus-4-5',
      'claude-opus-4-5-20251101',
      'claude-opus-4-6',
      'claude-opus-4-7',
      'claude-opus-4-8',
      'claude-opus-5',
    ],
  ),
  ...rows(
    'realtime',
    ['p1'],
    [
      'gpt-4o-realtime-preview',
      'gpt-4o-realtime-preview-2024-10-01',
      'gpt-4o-realtime-preview-2024-12-17',
      'gpt-4o-realtime-preview-2025-06-03',
      'gpt-4o-mini-realtime-preview',
      'gpt-4o-mini-realtime-preview-2024-12-17',
      'gpt-realtime',
      'gpt-realtime-2025-08-28',
      'gpt-realtime-1.5',
      'gpt-realtime-mini',
      'gpt-realtime-mini-2025-10-06',
      'gpt-realtime-mini-2025-12-15',
    ],
  ),
  ...rows('video', ['vidgen'], ['vidgen-v1-6']),
]
