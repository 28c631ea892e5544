import { Controller } from '@nestjs/common'
import { ApiBearerAuth, ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger'
import type { ProviderResponse } from '../core/byte-stream.js'
import type { RequestContext } from '../core/request-context.js'
import { ApiAudioErrors } from '../dialects/error-docs.js'
import { AUDIO_FORMATS } from '../dialects/speech-formats.js'
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

const AUDIO = { schema: { type: 'string', format: 'binary' } } as const
const CONTENT = Object.fromEntries(Object.values(AUDIO_FORMATS).map((type) => [type, AUDIO]))

@ApiTags('audio')
@ApiBearerAuth()
@Controller()
export class SpeechController {
  constructor(private readonly speech: SpeechService) {}

  @Endpoint(SPEECH)
  @ApiOperation({ summary: 'Text to speech' })
  @ApiOkResponse({
    description: 'Raw audio in the format asked for, or events with stream_format sse',
    content: { ...CONTENT, 'text/event-stream': { schema: { type: 'string' } } },
  })
  @ApiAudioErrors()
  speak(
    @JsonRequest(SPEECH, SpeechRequestDto) { body, call }: JsonBodyRequest<SpeechRequestDto>,
  ): Promise<ProviderResponse> {
    return this.speech.speak(body, call)
  }
}

const TRANSCRIPT = {
  'application/json': {
    schema: {
      type: 'object',
      required: ['text'],
      additionalProperties: true,
      properties: { text: { type: 'string' } },
    },
  },
  'text/plain': { schema: { type: 'string' } },
}

@ApiTags('audio')
@ApiBearerAuth()
@Controller()
export class TranscriptionController {
  constructor(private readonly transcription: TranscriptionService) {}

  @Endpoint(TRANSCRIPTIONS)
  @ApiOperation({ summary: 'Audio to text' })
  @ApiOkResponse({
    description: 'A transcript in the format asked for, or events with stream true',
    content: { ...TRANSCRIPT, 'text/event-stream': { schema: { type: 'string' } } },
  })
  @ApiAudioErrors()
  transcribe(
    @AudioUploadRequest(TRANSCRIPTIONS, TranscriptionRequestDto) upload: AudioUpload<TranscriptionRequestDto>,
    @CurrentRequest() call: RequestContext,
  ): Promise<ProviderResponse> {
    return this.transcription.transcribe(upload, call)
  }

  @Endpoint(TRANSLATIONS)
  @ApiOperation({ summary: 'Audio in any language to English text' })
  @ApiOkResponse({ description: 'English text in the format asked for', content: TRANSCRIPT })
  @ApiAudioErrors()
  translate(
    @AudioUploadRequest(TRANSLATIONS, TranslationRequestDto) upload: AudioUpload<TranslationRequestDto>,
    @CurrentRequest() call: RequestContext,
  ): Promise<ProviderResponse> {
    return this.transcription.translate(upload, call)
  }
}
