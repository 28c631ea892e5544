import { Injectable } from '@nestjs/common'
import { keyCredentials, noOptions } from '../../config/channel-schema.js'
import { CLASS_FORMATS } from '../../config/model-classes.js'
import { collect, ProviderResponse } from '../../core/byte-stream.js'
import type { UsageReader } from '../../core/request-context.js'
import { AUDIO_STATUS_MAP, sendOpenAIRequest } from '../../dialects/openai-wire.js'
import {
  type FormEdits,
  jsonTranscript,
  PLAIN_TEXT,
  renderSubtitles,
  type SubtitleFormat,
  textTranscript,
  transcriptionForm,
  TranscriptUsage,
} from '../../dialects/transcription.js'
import type { UpstreamResponse } from '../../upstream/exchange.js'
import { UpstreamClient } from '../../upstream/upstream-client.js'
import { assertContentType, HeaderAllowList, malformedResponse } from '../../upstream/upstream-response.js'
import type {
  AttemptContext,
  ProviderManifest,
  TranscriptionCall,
  TranscriptionProvider,
  TranslationProvider,
} from '../contract.js'

const RESPONSE_HEADERS = new HeaderAllowList('x-ratelimit-*')

/** Transcripts with segments of any file this product accepts stay far below this. */
const MAXIMUM_TRANSCRIPT_BYTES = 16 * 1024 * 1024

/** P4: plain file upload, the standard model only. It knows no subtitles, so these are made here from its segments. */
@Injectable()
class P4TranscriptionProvider implements TranscriptionProvider, TranslationProvider {
  constructor(private readonly client: UpstreamClient) {}

  transcribe(transcription: TranscriptionCall, context: AttemptContext): Promise<ProviderResponse> {
    return this.relay('/v1/audio/transcriptions', transcription, context)
  }

  translate(translation: TranscriptionCall, context: AttemptContext): Promise<ProviderResponse> {
    return this.relay('/v1/audio/translations', translation, context)
  }

  private async relay(path: string, asked: TranscriptionCall, context: AttemptContext): Promise<ProviderResponse> {
    const subtitles = subtitleFormat(asked.responseFormat)
    const form = transcriptionForm(asked, editsFor(context.upstreamModel, subtitles))
    const headers = ['authorization', `Bearer ${context.credentials}`, 'accept', '*/*']
    headers.push('content-type', form.contentType, 'content-length', String(form.contentLength))
    const request = { method: 'POST', path, headers, body: form.body } as const
    const response = await sendOpenAIRequest(this.client, request, context, AUDIO_STATUS_MAP)
    const usage = new TranscriptUsage(undefined, asked.durationSeconds)
    context.record.usage = usage
    return subtitles === undefined
      ? await transcript(response, asked, usage)
      : await subtitleResponse(response, subtitles, usage)
  }
}

const subtitleFormat = (format: string): SubtitleFormat | undefined =>
  format === 'srt' || format === 'vtt' ? format : undefined

function editsFor(model: string, subtitles: SubtitleFormat | undefined): FormEdits {
  if (subtitles === undefined) return { model }
  // Segments come by default; asking for words alone would leave them out.
  return { model, response_format: 'verbose_json', 'timestamp_granularities[]': undefined }
}

function transcript(
  response: UpstreamResponse,
  asked: TranscriptionCall,
  usage: UsageReader,
): Promise<ProviderResponse> {
  if (asked.responseFormat === 'text') return textTranscript(response, RESPONSE_HEADERS, usage)
  return jsonTranscript(response, RESPONSE_HEADERS, {
    durationSeconds: asked.durationSeconds,
    needsTokenUsage: false,
  })
}

async function subtitleResponse(
  response: UpstreamResponse,
  format: SubtitleFormat,
  usage: UsageReader,
): Promise<ProviderResponse> {
  assertContentType(response, /^application\/json/)
  const bytes = await collect(response.body, MAXIMUM_TRANSCRIPT_BYTES, () =>
    malformedResponse('The transcript of the upstream is too large.'),
  )
  const headers = { ...RESPONSE_HEADERS.pick(response.headers), 'content-type': PLAIN_TEXT }
  return new ProviderResponse(200, headers, Buffer.from(renderSubtitles(format, parsed(bytes))), usage)
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString())
  } catch {
    throw malformedResponse('The upstream answered with broken JSON.')
  }
}

/** P4, a relay for the standard transcription model. */
export const P4_MANIFEST: ProviderManifest = {
  name: 'p4',
  credentialsSchema: keyCredentials,
  optionsSchema: noOptions,
  capabilities: { transcription: P4TranscriptionProvider, translation: P4TranscriptionProvider },
  defaultModelClass: 'stt-standard',
  offers: { 'stt-standard': { formats: CLASS_FORMATS['stt-standard'] } },
  models: { 'stt-standard': ['whisper-1', 'whisper-large-v3', 'whisper-large-v3-turbo'] },
}
