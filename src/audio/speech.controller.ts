import { Controller, HttpCode, Injectable, Post, UseGuards } from '@nestjs/common'
import { ApiBearerAuth, ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger'
import { KeyGuard } from '../auth/key.guard.js'
import type { ProviderResponse } from '../core/byte-stream.js'
import type { JsonBody } from '../core/json-body.js'
import type { RequestContext } from '../core/request-context.js'
import { ApiAudioErrors } from '../dialects/error-docs.js'
import { AUDIO_FORMATS } from '../dialects/speech-formats.js'
import { expectedOfSpeech } from '../limits/estimate-usage.js'
import { ProviderRouter } from '../routing/router.js'
import { type JsonBodyRequest, JsonRequest } from '../server/json-request.js'
import { SpeechRequestDto } from './speech.dto.js'

/** Text to speech on whatever provider serves the model. */
@Injectable()
export class SpeechService {
  constructor(private readonly router: ProviderRouter) {}

  speak(body: JsonBody<SpeechRequestDto>, call: RequestContext): Promise<ProviderResponse> {
    const { model, input, speed } = body.fields
    call.log.model = model
    const route = this.router.speech(model, call.caller)
    const expected = call.quota === undefined ? undefined : expectedOfSpeech(input, speed)
    return route.attempt(call, { repeatableOnceSent: true, expected }, (provider, context) =>
      provider.speak({ body, modelClass: route.modelClass }, context),
    )
  }
}

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
  speak(@JsonRequest(SpeechRequestDto) { body, call }: JsonBodyRequest<SpeechRequestDto>): Promise<ProviderResponse> {
    return this.speech.speak(body, call)
  }
}
