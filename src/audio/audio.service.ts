import { Injectable } from '@nestjs/common'
import type { ModelClass } from '../config/model-classes.js'
import type { ProviderResponse } from '../core/byte-stream.js'
import type { JsonBody } from '../core/json-body.js'
import type { RequestContext } from '../core/request-context.js'
import type { TranscriptionCall } from '../providers/contract.js'
import { type AttemptPolicy, ProviderRouter } from '../routing/router.js'
import { SPEECH, TRANSCRIPTIONS, TRANSLATIONS } from './audio.endpoints.js'
import { inspectAudio } from './audio-probe.js'
import type { SpeechRequestDto } from './speech.dto.js'
import {
  assertFormat,
  type AudioUpload,
  DEFAULT_RESPONSE_FORMAT,
  type TranscriptionRequestDto,
  type TranslationRequestDto,
} from './transcription.dto.js'

/** Text to speech on the provider that serves the model. */
@Injectable()
export class SpeechService {
  constructor(private readonly router: ProviderRouter) {}

  speak(body: JsonBody<SpeechRequestDto>, call: RequestContext): Promise<ProviderResponse> {
    const { model, input, speed } = body.fields
    call.log.model = model
    const route = this.router.route('speech', model, call.caller)
    const estimatedUse = call.quota === undefined ? undefined : SPEECH.estimate(input, speed)
    return route.attempt(call, { canRetryAfterSend: true, estimatedUse }, (provider, context) =>
      provider.speak({ body, modelClass: route.modelClass }, context),
    )
  }
}

/** The specification: translation's model defaults to the class S model. */
const DEFAULT_TRANSLATION_MODEL = 'whisper-1'

/** A larger upload is not retried after it was sent (design: Reliability rules). */
const RETRYABLE_UPLOAD_BYTES = 10 * 1024 * 1024

/** Transcription and translation on the provider that serves the model. */
@Injectable()
export class TranscriptionService {
  constructor(private readonly router: ProviderRouter) {}

  async transcribe(upload: AudioUpload<TranscriptionRequestDto>, call: RequestContext): Promise<ProviderResponse> {
    const { model } = upload.named
    call.log.model = model
    const route = this.router.route('transcription', model, call.caller)
    const transcription = await callFor(upload, model, route.modelClass, upload.named.stream === 'true')
    return await route.attempt(call, policyFor(TRANSCRIPTIONS, transcription, call), (provider, context) =>
      provider.transcribe(transcription, context),
    )
  }

  async translate(upload: AudioUpload<TranslationRequestDto>, call: RequestContext): Promise<ProviderResponse> {
    const model = upload.named.model ?? DEFAULT_TRANSLATION_MODEL
    call.log.model = model
    const route = this.router.route('translation', model, call.caller)
    const translation = await callFor(upload, model, route.modelClass, false)
    return await route.attempt(call, policyFor(TRANSLATIONS, translation, call), (provider, context) =>
      provider.translate(translation, context),
    )
  }
}

/** Checks a file and its form as far as possible before an upstream is called. */
async function callFor(
  { file, fields, named }: AudioUpload<TranslationRequestDto>,
  model: string,
  modelClass: ModelClass,
  stream: boolean,
): Promise<TranscriptionCall> {
  const responseFormat = named.response_format ?? DEFAULT_RESPONSE_FORMAT
  assertFormat(responseFormat, model, modelClass)
  const facts = await inspectAudio(file.spool, file.filename)
  const { extension, contentType, durationSeconds } = facts
  return {
    file,
    extension,
    contentType,
    fields,
    responseFormat,
    stream,
    modelClass,
    ...(durationSeconds === undefined ? {} : { durationSeconds }),
  }
}

function policyFor(
  { estimate }: Pick<typeof TRANSCRIPTIONS, 'estimate'>,
  { file, durationSeconds, modelClass }: TranscriptionCall,
  { quota }: RequestContext,
): AttemptPolicy {
  const { size } = file.spool
  return {
    canRetryAfterSend: size <= RETRYABLE_UPLOAD_BYTES,
    estimatedUse: quota === undefined ? undefined : estimate(size, durationSeconds, modelClass !== 'stt-standard'),
  }
}
