import { Injectable } from '@nestjs/common'
import type { Call } from '../../common/http/call.js'
import type { JsonBody } from '../../common/http/json-body.js'
import { expectedOfSpeech } from '../../common/limits/expected-use.js'
import type { UpstreamAnswer } from '../../common/http/upstream-answer.js'
import { ProviderRouter } from '../../providers/provider-router.js'
import type { SpeechRequestDto } from './speech-request.dto.js'

/** Text to speech on whatever provider serves the model. */
@Injectable()
export class SpeechService {
  constructor(private readonly router: ProviderRouter) {}

  speak(body: JsonBody<SpeechRequestDto>, call: Call): Promise<UpstreamAnswer> {
    const { model, input, speed } = body.fields
    call.log.model = model
    const route = this.router.speech(model, call.caller)
    const expected = call.allowance === undefined ? undefined : expectedOfSpeech(input, speed)
    return route.attempt(call, { repeatableOnceSent: true, expected }, (provider, context) =>
      provider.speak({ body, modelClass: route.modelClass }, context),
    )
  }
}
