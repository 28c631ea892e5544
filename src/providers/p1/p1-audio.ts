import { Injectable } from '@nestjs/common'
import type { ProviderResponse } from '../../core/byte-stream.js'
import type { JsonEdits } from '../../core/json-body.js'
import { DeltaCounter } from '../../core/token-counter.js'
import { RelayedUsage } from '../../core/usage.js'
import { codePoints } from '../../core/validation-rules.js'
import {
  AUDIO_STATUS_MAP,
  DoneUsage,
  sendOpenAIRequest,
  SPEECH_EVENTS,
  TRANSCRIPTION_EVENTS,
} from '../../dialects/openai-wire.js'
import { assertInputLength, AUDIO_FORMATS, requestedFormat } from '../../dialects/speech-formats.js'
import {
  AudioCounter,
  estimateSpeechUsage,
  SpeechEventUsageEstimator,
  speechResponse,
  SpeechUsageEstimator,
} from '../../dialects/speech-response.js'
import {
  jsonTranscript,
  textTranscript,
  transcriptionForm,
  TranscriptUsage,
  TranscriptUsageEstimator,
} from '../../dialects/transcription.js'
import type { UpstreamResponse } from '../../upstream/exchange.js'
import { UpstreamClient } from '../../upstream/upstream-client.js'
import {
  contentTypeOf,
  eventStreamResponse,
  fileResponse,
  malformedResponse,
} from '../../upstream/upstream-response.js'
import type {
  AttemptContext,
  SpeechCall,
  SpeechProvider,
  TranscriptionCall,
  TranscriptionProvider,
  TranslationProvider,
} from '../contract.js'
import { P1_RESPONSE_HEADERS, p1Headers } from './p1-chat.js'

/** P1 refuses longer texts. */
const MAXIMUM_INPUT_CHARACTERS = 4096

/** `POST /v1/audio/speech` at P1: the caller's bytes, less what is this product's own. */
@Injectable()
export class P1SpeechProvider implements SpeechProvider {
  constructor(private readonly client: UpstreamClient) {}

  async speak(speech: SpeechCall, context: AttemptContext): Promise<ProviderResponse> {
    assertInputLength(speech.body.fields.input, MAXIMUM_INPUT_CHARACTERS)
    const headers = p1Headers(context, 'application/json', 'application/octet-stream')
    const body = speech.body.edited(editsFor(speech, context))
    const request = { method: 'POST', path: '/v1/audio/speech', headers, body } as const
    const response = await sendOpenAIRequest(this.client, request, context, AUDIO_STATUS_MAP)
    return speech.body.fields.stream_format === 'sse'
      ? await this.eventResponse(response, speech, context)
      : await audioResponse(response, speech)
  }

  /** P1 ignores `sse` for some models and sends raw audio; then the events are built here, so that one form remains. */
  private async eventResponse(
    response: UpstreamResponse,
    speech: SpeechCall,
    context: AttemptContext,
  ): Promise<ProviderResponse> {
    const { input, response_format: format } = speech.body.fields
    const sentAs = requestedFormat(format)
    if (contentTypeOf(response).startsWith('text/event-stream')) {
      const deltas = new AudioCounter()
      const usage = new RelayedUsage(new SpeechEventUsageEstimator(input, sentAs, deltas))
      const { filter } = new DoneUsage('speech.audio.done', (found) => {
        usage.reportedUsage = found
      })
      const events = { ...SPEECH_EVENTS, secret: context.credentials, deltas }
      return await eventStreamResponse(response, P1_RESPONSE_HEADERS, events, { usage, filter })
    }
    assertAudio(response)
    const spoken = {
      source: response.body,
      format: sentAs,
      sentAs,
      usage: () => estimateSpeechUsage(input),
      characters: () => codePoints(input),
      headers: P1_RESPONSE_HEADERS.pick(response.headers),
    }
    return await speechResponse(spoken, 'sse')
  }
}

function editsFor({ body, modelClass }: SpeechCall, { upstreamModel }: AttemptContext): JsonEdits {
  return {
    ...(upstreamModel === body.fields.model ? {} : { model: JSON.stringify(upstreamModel) }),
    // This product's own field; P1's schema forbids additional properties.
    metadata: undefined,
    // Honoured by the style-capable class alone (specification: Speech request).
    ...(modelClass === 'tts-style' ? {} : { instructions: undefined }),
  }
}

async function audioResponse(response: UpstreamResponse, speech: SpeechCall): Promise<ProviderResponse> {
  assertAudio(response)
  const { input, response_format: format } = speech.body.fields
  const type = contentTypeOf(response)
  const headers = {
    ...P1_RESPONSE_HEADERS.pick(response.headers),
    'content-type': type.startsWith('audio/') ? type : AUDIO_FORMATS[requestedFormat(format)],
  }
  // What has begun is charged for as a whole.
  return await fileResponse(
    response.status,
    headers,
    response.body,
    (relayed) =>
      new RelayedUsage(
        new SpeechUsageEstimator(
          () => codePoints(input),
          requestedFormat(format),
          () => relayed.passedBytes,
        ),
      ),
  )
}

function assertAudio(response: UpstreamResponse): void {
  if (/^(?:audio\/|application\/octet-stream)/.test(contentTypeOf(response))) return
  response.body.cancel()
  throw malformedResponse('The upstream answered with something that is not audio.')
}

const TEXT_FORMATS: ReadonlySet<string> = new Set(['text', 'srt', 'vtt'])

/** `POST /v1/audio/transcriptions` and `/translations` at P1. */
@Injectable()
export class P1TranscriptionProvider implements TranscriptionProvider, TranslationProvider {
  constructor(private readonly client: UpstreamClient) {}

  transcribe(transcription: TranscriptionCall, context: AttemptContext): Promise<ProviderResponse> {
    return this.relay('/v1/audio/transcriptions', transcription, context)
  }

  translate(translation: TranscriptionCall, context: AttemptContext): Promise<ProviderResponse> {
    return this.relay('/v1/audio/translations', translation, context)
  }

  private async relay(path: string, call: TranscriptionCall, context: AttemptContext): Promise<ProviderResponse> {
    const form = transcriptionForm(call, { model: context.upstreamModel })
    const headers = p1Headers(context, form.contentType, '*/*')
    headers.push('content-length', String(form.contentLength))
    const request = { method: 'POST', path, headers, body: form.body } as const
    const response = await sendOpenAIRequest(this.client, request, context, AUDIO_STATUS_MAP)
    return await responseOf(response, call, context)
  }
}

function responseOf(
  response: UpstreamResponse,
  asked: TranscriptionCall,
  { credentials, record }: AttemptContext,
): Promise<ProviderResponse> {
  // Class S ignores `stream` and answers as if it had not been asked.
  if (asked.stream && contentTypeOf(response).startsWith('text/event-stream')) {
    const deltas = new DeltaCounter()
    const usage = new RelayedUsage(new TranscriptUsageEstimator(asked.durationSeconds, deltas))
    record.usage = usage
    const { filter } = new DoneUsage('transcript.text.done', (found) => {
      usage.reportedUsage = found
    })
    const events = { ...TRANSCRIPTION_EVENTS, secret: credentials, deltas }
    return eventStreamResponse(response, P1_RESPONSE_HEADERS, events, { usage, filter })
  }
  const usage = new TranscriptUsage(undefined, asked.durationSeconds)
  record.usage = usage
  if (TEXT_FORMATS.has(asked.responseFormat)) return textTranscript(response, P1_RESPONSE_HEADERS, usage)
  return jsonTranscript(response, P1_RESPONSE_HEADERS, {
    durationSeconds: asked.durationSeconds,
    needsTokenUsage: asked.modelClass !== 'stt-standard',
  })
}
