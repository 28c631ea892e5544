import { Injectable } from '@nestjs/common'
import type { ProviderResponse } from '../../core/byte-stream.js'
import { DeltaCounter } from '../../core/token-counter.js'
import { RelayedUsage } from '../../core/usage.js'
import { AUDIO_STATUS_MAP, parseOpenAIError, DoneUsage, TRANSCRIPTION_EVENTS } from '../../dialects/openai-wire.js'
import {
  jsonTranscript,
  textTranscript,
  transcriptionForm,
  TranscriptUsage,
  TranscriptUsageEstimator,
} from '../../dialects/transcription.js'
import { UpstreamClient, type UpstreamResponse } from '../../upstream/upstream-client.js'
import { contentTypeOf, eventStreamResponse } from '../../upstream/upstream-response.js'
import type { AttemptContext, TranscriptionCall, TranscriptionProvider, TranslationProvider } from '../contract.js'
import { P1_RESPONSE_HEADERS, p1Headers } from './p1-chat.js'

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
    const response = await this.client.send(
      { method: 'POST', path, headers, body: form.body() },
      context.target,
      context,
      context.deadlineAtMs,
    )
    if (response.status !== 200) throw await parseOpenAIError(response, context, AUDIO_STATUS_MAP)
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
      usage.figures = found
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
