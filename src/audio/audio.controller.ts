import { Controller } from '@nestjs/common'
import type { ProviderResponse } from '../core/byte-stream.js'
import type { RequestContext } from '../core/request-context.js'
import { Endpoint } from '../server/endpoint.decorator.js'
import { CurrentRequest, type JsonBodyRequest, JsonRequest } from '../server/json-request.js'
import { SPEECH, TRANSCRIPTIONS, TRANSLATIONS } from './audio.endpoints.js'
import { SpeechRequestDto } from './speech.dto.js'
import {
  type AudioUpload,
  AudioUploadRequest,
  TranscriptionRequestDto,
  TranslationRequestDto,
} from './transcription.dto.js'
import { SpeechService, TranscriptionService } from './audio.service.js'

@Controller()
export class SpeechController {
  constructor(private readonly speech: SpeechService) {}

  @Endpoint(SPEECH)
  speak(
    @JsonRequest(SPEECH, SpeechRequestDto) { body, call }: JsonBodyRequest<SpeechRequestDto>,
  ): Promise<ProviderResponse> {
    return this.speech.speak(body, call)
  }
}

@Controller()
export class TranscriptionController {
  constructor(private readonly transcription: TranscriptionService) {}

  @Endpoint(TRANSCRIPTIONS)
  transcribe(
    @AudioUploadRequest(TRANSCRIPTIONS, TranscriptionRequestDto) upload: AudioUpload<TranscriptionRequestDto>,
    @CurrentRequest() call: RequestContext,
  ): Promise<ProviderResponse> {
    return this.transcription.transcribe(upload, call)
  }

  @Endpoint(TRANSLATIONS)
  translate(
    @AudioUploadRequest(TRANSLATIONS, TranslationRequestDto) upload: AudioUpload<TranslationRequestDto>,
    @CurrentRequest() call: RequestContext,
  ): Promise<ProviderResponse> {
    return this.transcription.translate(upload, call)
  }
}
