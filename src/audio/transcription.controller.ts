import { Controller } from '@nestjs/common'
import { ApiBearerAuth, ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger'
import type { ProviderResponse } from '../core/byte-stream.js'
import type { RequestContext } from '../core/request-context.js'
import { ApiAudioErrors } from '../dialects/error-docs.js'
import { Endpoint } from '../server/endpoint.decorator.js'
import { CurrentRequest } from '../server/json-request.js'
import { TRANSCRIPTIONS, TRANSLATIONS } from './audio.endpoints.js'
import {
  type AudioUpload,
  AudioUploadRequest,
  TranscriptionRequestDto,
  TranslationRequestDto,
} from './transcription.dto.js'
import { TranscriptionService } from './transcription.service.js'

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
