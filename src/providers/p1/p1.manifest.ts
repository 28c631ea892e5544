import { keyCredentials } from '../../config/channel-schema.js'
import { oneOf, settings } from '../../config/value-types.js'
import { CLASS_FORMATS } from '../../config/model-classes.js'
import { BETA_FORMATS } from '../../dialects/realtime/session-state.js'
import { AUDIO_FORMAT_NAMES, CHAT_AUDIO_FORMATS } from '../../dialects/speech-formats.js'
import type { ProviderManifest } from '../contract.js'
import { P1ChatProvider } from './p1-chat.js'
import { P1EmbeddingsProvider } from './p1-embeddings.js'
import { P1_MODEL_FACTS } from './p1-model-facts.js'
import { P1_MODELS, P1_REASONING_MODELS } from './p1-models.js'
import { P1ResponsesProvider } from './p1-responses.js'
import { P1RealtimeProvider } from './p1-realtime.js'
import { P1SpeechProvider, P1TranscriptionProvider } from './p1-audio.js'

/** Of the older speech models; those with a style have all. */
const SPEECH_VOICES = ['alloy', 'ash', 'coral', 'echo', 'fable', 'nova', 'onyx', 'sage', 'shimmer']
const STYLE_VOICES = [...SPEECH_VOICES, 'ballad', 'cedar', 'marin', 'verse']
/** Of models that hear and speak. */
const SPOKEN_VOICES = ['alloy', 'ash', 'ballad', 'cedar', 'coral', 'echo', 'marin', 'sage', 'shimmer', 'verse']

/** P1, the general upstream: speech, transcription, translation, chat and embeddings over HTTP, realtime over WebSocket. */
export const P1_MANIFEST: ProviderManifest = {
  name: 'p1',
  credentialsSchema: keyCredentials,
  optionsSchema: settings({
    realtimeDialect: oneOf(['ga', 'beta'])
      .default('ga')
      .describe('p1: event names the upstream speaks on realtime sockets'),
    countBy: oneOf(['estimate', 'responses'])
      .default('estimate')
      .describe(
        'p1: who counts the tokens of messages that are translated: the gateway, or `/v1/responses/input_tokens`',
      ),
  }),
  capabilities: {
    speech: P1SpeechProvider,
    transcription: P1TranscriptionProvider,
    translation: P1TranscriptionProvider,
    chat: P1ChatProvider,
    responses: P1ResponsesProvider,
    embeddings: P1EmbeddingsProvider,
    realtime: P1RealtimeProvider,
    realtime_transcription: P1RealtimeProvider,
  },
  defaultModelClass: 'chat',
  offers: {
    tts: { voices: SPEECH_VOICES, formats: AUDIO_FORMAT_NAMES },
    'tts-style': { voices: STYLE_VOICES, formats: AUDIO_FORMAT_NAMES },
    'stt-standard': { formats: CLASS_FORMATS['stt-standard'] },
    'stt-generation': { formats: CLASS_FORMATS['stt-generation'] },
    'stt-diarize': { formats: CLASS_FORMATS['stt-diarize'] },
    'chat-audio': { voices: SPOKEN_VOICES, formats: CHAT_AUDIO_FORMATS },
    realtime: { voices: SPOKEN_VOICES, formats: BETA_FORMATS },
  },
  reasoningModels: P1_REASONING_MODELS,
  modelFacts: P1_MODEL_FACTS,
  models: P1_MODELS,
}
