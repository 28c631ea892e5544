import { schemaOf } from '../core/dto.js'
import type { RouteDocumentation } from '../core/endpoint.js'
import { answer, described, eventsOf, nullable, type Schema, TEXT } from '../core/json-schema.js'
import { AUDIO_FORMATS } from '../dialects/speech-formats.js'
import { SpeechRequestDto } from './speech.dto.js'
import { TranscriptionRequestDto, TranslationRequestDto } from './transcription.dto.js'

const AUDIO = { ...TEXT, format: 'binary', description: 'Audio as it is' } as const satisfies Schema

const SPEECH_EVENT = answer('SpeechEvent', 'The data of one event; the last event is data: [DONE]', {
  type: described('speech.audio.delta or speech.audio.done'),
  'audio?': described('The next piece of audio, as Base64'),
  'usage?': { description: 'Tokens that were used, with speech.audio.done' },
})

export const SPEECH_DOCUMENTATION: RouteDocumentation = {
  operationId: 'createSpeech',
  tag: 'audio',
  summary: 'Text to speech',
  description: 'Speaks a text. The audio comes as it is made, as bytes or with stream_format sse as events.',
  body: { 'application/json': schemaOf(SpeechRequestDto, 'SpeechRequest', 'A text to speak') },
  answer: {
    description: 'Raw audio in the format asked for, or events with stream_format sse',
    content: {
      ...Object.fromEntries(Object.values(AUDIO_FORMATS).map((type) => [type, AUDIO])),
      'text/event-stream': eventsOf(SPEECH_EVENT),
    },
  },
}

const TRANSCRIPT = answer('Transcript', 'A transcript; what else it has depends on the format', {
  text: described('What was said'),
  'task?': described('transcribe or translate, with verbose_json'),
  'language?': nullable(described('With verbose_json')),
  'duration?': { type: ['number', 'string'], description: 'Seconds, with verbose_json' },
  'segments?': { description: 'With their times, in verbose_json and diarized_json' },
  'words?': { description: 'With their times, where timestamp_granularities[] asks for them' },
  'usage?': { description: 'Seconds or tokens that were used' },
})

const CONTENT = {
  'application/json': TRANSCRIPT,
  'text/plain': { ...TEXT, description: 'With response_format text, srt or vtt' },
} as const

const TRANSCRIPT_EVENT = answer('TranscriptEvent', 'The data of one event; the last event is data: [DONE]', {
  type: described('transcript.text.delta, transcript.text.segment or transcript.text.done'),
  'delta?': described('The next piece of text'),
  'text?': described('The whole text, with transcript.text.done'),
  'usage?': { description: 'Tokens that were used, with transcript.text.done' },
})

export const TRANSCRIPTIONS_DOCUMENTATION: RouteDocumentation = {
  operationId: 'createTranscription',
  tag: 'audio',
  summary: 'Audio to text',
  description: 'Writes down what is said, in the language in which it is said.',
  body: { 'multipart/form-data': schemaOf(TranscriptionRequestDto, 'TranscriptionForm', 'Audio to write down') },
  answer: {
    description: 'A transcript in the format asked for, or events with stream true',
    content: { ...CONTENT, 'text/event-stream': eventsOf(TRANSCRIPT_EVENT) },
  },
}

export const TRANSLATIONS_DOCUMENTATION: RouteDocumentation = {
  operationId: 'createTranslation',
  tag: 'audio',
  summary: 'Audio in any language to English text',
  description: 'Writes down in English what is said.',
  body: { 'multipart/form-data': schemaOf(TranslationRequestDto, 'TranslationForm', 'Audio to translate') },
  answer: { description: 'English text in the format asked for', content: CONTENT },
}
