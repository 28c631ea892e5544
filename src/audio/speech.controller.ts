import { Controller, Injectable } from '@nestjs/common'
import { ApiBearerAuth, ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger'
import type { ProviderResponse } from '../core/byte-stream.js'
import type { JsonBody } from '../core/json-body.js'
import type { RequestContext } from '../core/request-context.js'
import { ApiAudioErrors } from '../dialects/error-docs.js'
import { AUDIO_FORMATS } from '../dialects/speech-formats.js'
import { ProviderRouter } from '../routing/router.js'
import { Endpoint } from '../server/endpoint.decorator.js'
import { type JsonBodyRequest, JsonRequest } from '../server/json-request.js'
import { SPEECH } from './audio.endpoints.js'
import { SpeechRequestDto } from './speech.dto.js'

/** Text to speech on whatever provider serves the model. */
@Injectable()
export class SpeechService {
  constructor(private readonly router: ProviderRouter) {}

  speak(body: JsonBody<SpeechRequestDto>, call: RequestContext): Promise<ProviderResponse> {
    const { model, input, speed } = body.fields
    call.log.model = model
    const route = this.router.route('speech', model, call.caller)
    const expected = call.quota === undefined ? undefined : SPEECH.estimate(input, speed)
    return route.attempt(call, { repeatableOnceSent: true, expected }, (provider, context) =>
      provider.speak({ body, modelClass: route.modelClass }, context),
    )
  }
}

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
