import type { EndpointSpec } from '../core/endpoint.js'
import { estimateRecording, estimateSpeech } from '../limits/estimate-usage.js'
import {
  SPEECH_DOCUMENTATION,
  TRANSCRIPTIONS_DOCUMENTATION,
  TRANSLATIONS_DOCUMENTATION,
} from './audio.documentation.js'

export const SPEECH = {
  name: 'audio.speech',
  method: 'POST',
  path: '/v1/audio/speech',
  dialect: 'openai-audio',
  capability: 'speech',
  billing: { records: ['request'], usageClass: 'tts', model: undefined },
  estimate: estimateSpeech,
  metricFamily: 'speech',
  keyHeaders: ['authorization'],
  rateLimit: 'counted',
  bodyLimit: 'jsonBodyBytes',
  loggedPath: 'path',
  documentation: SPEECH_DOCUMENTATION,
} as const satisfies EndpointSpec

export const TRANSCRIPTIONS = {
  name: 'audio.transcriptions',
  method: 'POST',
  path: '/v1/audio/transcriptions',
  dialect: 'openai-audio',
  capability: 'transcription',
  billing: { records: ['request'], usageClass: 'stt-standard', model: undefined },
  estimate: estimateRecording,
  metricFamily: 'transcription',
  keyHeaders: ['authorization'],
  rateLimit: 'counted',
  bodyLimit: 'audioBodyBytes',
  loggedPath: 'path',
  documentation: TRANSCRIPTIONS_DOCUMENTATION,
} as const satisfies EndpointSpec

export const TRANSLATIONS = {
  ...TRANSCRIPTIONS,
  name: 'audio.translations',
  path: '/v1/audio/translations',
  capability: 'translation',
  metricFamily: 'translation',
  documentation: TRANSLATIONS_DOCUMENTATION,
} as const satisfies EndpointSpec
