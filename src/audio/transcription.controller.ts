import { Controller, HttpCode, Post, UseGuards } from '@nestjs/common'
import { ApiBearerAuth, ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger'
import { KeyGuard } from '../auth/key.guard.js'
import type { ProviderResponse } from '../core/byte-stream.js'
import type { RequestContext } from '../core/request-context.js'
import { ApiAudioErrors } from '../dialects/error-docs.js'
import { CurrentRequest } from '../server/json-request.js'
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
@Controller('v1/audio')
@UseGuards(KeyGuard)
export class TranscriptionController {
  constructor(private readonly transcription: TranscriptionService) {}

  @Post('transcriptions')
  @HttpCode(200)
  @ApiOperation({ summary: 'Audio to text' })
  @ApiOkResponse({
    description: 'A transcript in the format asked for, or events with stream true',
    content: { ...TRANSCRIPT, 'text/event-stream': { schema: { type: 'string' } } },
  })
  @ApiAudioErrors()
  transcribe(
    @AudioUploadRequest(TranscriptionRequestDto) upload: AudioUpload<TranscriptionRequestDto>,
    @CurrentRequest() call: RequestContext,
  ): Promise<ProviderResponse> {
    return this.transcription.transcribe(upload, call)
  }

  @Post('translations')
  @HttpCode(200)
  @ApiOperation({ summary: 'Audio in any language to English text' })
  @ApiOkResponse({ description: 'English text in the format asked for', content: TRANSCRIPT })
  @ApiAudioErrors()
  translate(
    @AudioUploadRequest(TranslationRequestDto) upload: AudioUpload<TranslationRequestDto>,
    @CurrentRequest() call: RequestContext,
  ): Promise<ProviderResponse> {
    return this.transcription.translate(upload, call)
  }
}
