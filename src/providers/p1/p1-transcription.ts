import { Injectable } from '@nestjs/common'
import type { ProviderResponse } from '../../core/byte-stream.js'
import { DeltaCounter } from '../../core/token-counter.js'
import { AUDIO_STATUS_MAP, parseOpenAIError, DoneUsage, TRANSCRIPTION_EVENTS } from '../../dialects/openai-wire.js'
import {
  durationUsage,
  jsonTranscript,
  textTranscript,
  transcriptionForm,
  TranscriptUsageEstimator,
} from '../../dialects/transcription.js'
import { UpstreamClient, type UpstreamResponse } from '../../upstream/upstream-client.js'
import { contentTypeOf, eventStreamResponse } from '../../upstream/upstream-response.js'
import type { CallContext, TranscriptionCall, TranscriptionProvider, TranslationProvider } from '../contract.js'
import { P1_RESPONSE_HEADERS, p1Headers } from './p1.headers.js'

const TEXT_FORMATS: ReadonlySet<string> = new Set(['text', 'srt', 'vtt'])

/** `POST /v1/audio/transcriptions` and `/translations` at P1. */
@Injectable()
export class P1TranscriptionProvider implements TranscriptionProvider, TranslationProvider {
  constructor(private readonly client: UpstreamClient) {}

  transcribe(transcription: TranscriptionCall, context: CallContext): Promise<ProviderResponse> {
    return this.relay('/v1/audio/transcriptions', transcription, context)
  }

  translate(translation: TranscriptionCall, context: CallContext): Promise<ProviderResponse> {
    return this.relay('/v1/audio/translations', translation, context)
  }

  private async relay(path: string, call: TranscriptionCall, context: CallContext): Promise<ProviderResponse> {
    const form = transcriptionForm(call, { model: context.upstreamModel })
    const headers = p1Headers(context, form.contentType, '*/*')
    headers.push('content-length', String(form.contentLength))
    const response = await this.client.send(
      { method: 'POST', path, headers, body: form.body() },
      context.target,
      context.call,
      context.deadlineAtMs,
    )
    if (response.status !== 200) throw await parseOpenAIError(response, context, AUDIO_STATUS_MAP)
    return await responseOf(response, call, context)
  }
}

function responseOf(
  response: UpstreamResponse,
  asked: TranscriptionCall,
  { call, credentials }: CallContext,
): Promise<ProviderResponse> {
  // Class S ignores `stream` and answers as if it had not been asked.
  if (asked.stream && contentTypeOf(response).startsWith('text/event-stream')) {
    const usage = new DoneUsage('transcript.text.done', (found) => {
      call.log.usage = found
    })
    const deltas = new DeltaCounter()
    call.log.usageEstimator = new TranscriptUsageEstimator(asked.durationSeconds, deltas)
    const events = { ...TRANSCRIPTION_EVENTS, secret: credentials, deltas }
    return eventStreamResponse(response, P1_RESPONSE_HEADERS, events, usage.filter)
  }
  const seconds = durationUsage(asked.durationSeconds)
  if (seconds !== undefined) call.log.usage = seconds
  if (TEXT_FORMATS.has(asked.responseFormat)) return textTranscript(response, P1_RESPONSE_HEADERS)
  return jsonTranscript(response, P1_RESPONSE_HEADERS, {
    call,
    durationSeconds: asked.durationSeconds,
    needsTokenUsage: asked.modelClass !== 'stt-standard',
  })
}
