import { keyCredentials } from '../../config/channel-schema.js'
import { oneOf, settings } from '../../config/value-types.js'
import { CLASS_FORMATS } from '../../config/model-classes.js'
import { AUDIO_FORMAT_NAMES } from '../../dialects/speech-formats.js'
import type { ProviderManifest } from '../contract.js'
import { P1ChatProvider } from './p1-chat.js'
import { P1RealtimeProvider } from './p1-realtime.js'
import { P1SpeechProvider, P1TranscriptionProvider } from './p1-audio.js'

/** Of the older speech models; those with a style have all. */
const SPEECH_VOICES = ['alloy', 'ash', 'coral', 'echo', 'fable', 'nova', 'onyx', 'sage', 'shimmer']
const STYLE_VOICES = [...SPEECH_VOICES, 'ballad', 'cedar', 'marin', 'verse']
/** Of models that hear and speak. */
const SPOKEN_VOICES = ['alloy', 'ash', 'ballad', 'cedar', 'coral', 'echo', 'marin', 'sage', 'shimmer', 'verse']

/** P1, the general upstream: speech, transcription, translation and chat over HTTP, realtime over WebSocket. */
export const P1_MANIFEST: ProviderManifest = {
  name: 'p1',
  credentialsSchema: keyCredentials,
  optionsSchema: settings({
    realtimeDialect: oneOf(['ga', 'beta'])
      .default('ga')
      .describe('p1: event names the upstream speaks on realtime sockets'),
  }),
  capabilities: {
    speech: P1SpeechProvider,
    transcription: P1TranscriptionProvider,
    translation: P1TranscriptionProvider,
    chat: P1ChatProvider,
    realtime: P1RealtimeProvider,
  },
  defaultModelClass: 'chat',
  offers: {
    tts: { voices: SPEECH_VOICES, formats: AUDIO_FORMAT_NAMES },
    'tts-style': { voices: STYLE_VOICES, formats: AUDIO_FORMAT_NAMES },
    'stt-standard': { formats: CLASS_FORMATS['stt-standard'] },
    'stt-generation': { formats: CLASS_FORMATS['stt-generation'] },
    'stt-diarize': { formats: CLASS_FORMATS['stt-diarize'] },
    'chat-audio': { voices: SPOKEN_VOICES, formats: ['wav', 'aac', 'mp3', 'flac', 'opus', 'pcm16'] },
    realtime: { voices: SPOKEN_VOICES, formats: ['pcm16', 'g711_ulaw', 'g711_alaw'] },
  },
  reasoningModels: ['gpt-5', 'gpt-5-mini', 'gpt-5-nano', 'o1', 'o3', 'o3-mini', 'o4-mini'],
  models: {
    tts: ['tts-1', 'tts-1-hd', 'tts-1-1106', 'tts-1-hd-1106'],
    'tts-style': ['gpt-4o-mini-tts', 'gpt-4o-mini-tts-2025-03-20', 'gpt-4o-mini-tts-2025-12-15'],
    'stt-standard': ['whisper-1'],
    'stt-generation': [
      'gpt-4o-transcribe',
      'gpt-4o-mini-transcribe',
      'gpt-4o-mini-transcribe-2025-03-20',
      'gpt-4o-mini-transcribe-2025-12-15',
      'gpt-transcribe',
    ],
    'stt-diarize': ['gpt-4o-transcribe-diarize'],
    chat: [
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
    'chat-audio': [
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
    realtime: [
      'gpt-4o-realtime-preview',
      'gpt-4o-realtime-preview-2024-10-01',
      'gpt-4o-realtime-preview-2024-12-17',
      'gpt-4o-realtime-preview-2025-06-03',
      'gpt-4o-mini-realtime-preview',
      'gpt-4o-mini-realtime-preview-2024-12-17',
      'gpt-realtime',
      'gpt-realtime-2025-08-28',
      'gpt-realtime-1.5',
      'gpt-realtime-2',
      'gpt-realtime-2.1',
      'gpt-realtime-2.1-mini',
      'gpt-realtime-mini',
      'gpt-realtime-mini-2025-10-06',
      'gpt-realtime-mini-2025-12-15',
    ],
  },
}
