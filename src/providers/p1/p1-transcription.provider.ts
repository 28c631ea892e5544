import { Injectable } from '@nestjs/common'
import { TRANSCRIPTION_EVENTS } from '../../common/audio-dialect/audio-events.js'
import { AUDIO_STATUS_MAP, audioRefusal } from '../../common/audio-dialect/audio-refusal.js'
import { DoneUsage } from '../../common/audio-dialect/done-usage.js'
import { durationUsage, jsonTranscript, textTranscript } from '../../common/audio-dialect/transcription-answers.js'
import { TranscriptMeter } from '../../common/audio-dialect/transcript-meter.js'
import { transcriptionForm } from '../../common/audio-dialect/transcription-form.js'
import { contentTypeOf, eventStreamAnswer } from '../../common/http/answers.js'
import { DeltaCounter } from '../../common/http/delta-counter.js'
import type { UpstreamAnswer } from '../../common/http/upstream-answer.js'
import { UpstreamClient } from '../../common/http/upstream-client.js'
import type { UpstreamResponse } from '../../common/http/upstream-exchange.js'
import type { CallContext } from '../contracts/call-context.js'
import type {
  TranscriptionCall,
  TranscriptionProvider,
  TranslationProvider,
} from '../contracts/transcription.contract.js'
import { P1_RESPONSE_HEADERS, p1Headers } from './p1.headers.js'

const TEXT_FORMATS: ReadonlySet<string> = new Set(['text', 'srt', 'vtt'])

/** `POST /v1/audio/transcriptions` and `/translations` at P1. */
@Injectable()
export class P1TranscriptionProvider implements TranscriptionProvider, TranslationProvider {
  constructor(private readonly client: UpstreamClient) {}

  transcribe(transcription: TranscriptionCall, context: CallContext): Promise<UpstreamAnswer> {
    return this.relay('/v1/audio/transcriptions', transcription, context)
  }

  translate(translation: TranscriptionCall, context: CallContext): Promise<UpstreamAnswer> {
    return this.relay('/v1/audio/translations', translation, context)
  }

  private async relay(path: string, call: TranscriptionCall, context: CallContext): Promise<UpstreamAnswer> {
    const form = transcriptionForm(call, { model: context.upstreamModel })
    const headers = p1Headers(context, form.contentType, '*/*')
    headers.push('content-length', String(form.contentLength))
    const response = await this.client.send(
      { method: 'POST', path, headers, body: form.body() },
      context.target,
      context.call,
      context.deadlineAtMs,
    )
    if (response.status !== 200) throw await audioRefusal(response, context, AUDIO_STATUS_MAP)
    return await answerOf(response, call, context)
  }
}

function answerOf(
  response: UpstreamResponse,
  asked: TranscriptionCall,
  { call, credentials }: CallContext,
): Promise<UpstreamAnswer> {
  // Class S ignores `stream` and answers as if it had not been asked.
  if (asked.stream && contentTypeOf(response).startsWith('text/event-stream')) {
    const usage = new DoneUsage('transcript.text.done', (found) => {
      call.log.usage = found
    })
    const deltas = new DeltaCounter()
    call.log.meter = new TranscriptMeter(asked.durationSeconds, deltas)
    const events = { ...TRANSCRIPTION_EVENTS, secret: credentials, deltas }
    return eventStreamAnswer(response, P1_RESPONSE_HEADERS, events, usage.filter)
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
