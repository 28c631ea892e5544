import { Controller, HttpCode, Post, UseGuards } from '@nestjs/common'
import { ApiBearerAuth, ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger'
import { KeyGuard } from '../auth/key.guard.js'
import type { UpstreamAnswer } from '../core/upstream-answer.js'
import { AUDIO_FORMATS } from '../dialects/audio-formats.js'
import { ApiAudioErrors } from '../dialects/error-docs.js'
import { type JsonCall, JsonRequest } from '../server/json-request.js'
import { SpeechRequestDto } from './speech.dto.js'
import { SpeechService } from './speech.service.js'

const AUDIO = { schema: { type: 'string', format: 'binary' } } as const
const CONTENT = Object.fromEntries(Object.values(AUDIO_FORMATS).map((type) => [type, AUDIO]))

@ApiTags('audio')
@ApiBearerAuth()
@Controller('v1/audio/speech')
@UseGuards(KeyGuard)
export class SpeechController {
  constructor(private readonly speech: SpeechService) {}

  @Post()
  @HttpCode(200)
  @ApiOperation({ summary: 'Text to speech' })
  @ApiOkResponse({
    description: 'Raw audio in the format asked for, or events with stream_format sse',
    content: { ...CONTENT, 'text/event-stream': { schema: { type: 'string' } } },
  })
  @ApiAudioErrors()
  speak(@JsonRequest(SpeechRequestDto) { body, call }: JsonCall<SpeechRequestDto>): Promise<UpstreamAnswer> {
    return this.speech.speak(body, call)
  }
}
