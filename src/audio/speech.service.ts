import { Injectable } from '@nestjs/common'
import type { JsonBody } from '../core/json-body.js'
import type { Call } from '../core/request-context.js'
import type { UpstreamAnswer } from '../core/upstream-answer.js'
import { expectedOfSpeech } from '../limits/estimate-usage.js'
import { ProviderRouter } from '../routing/router.js'
import type { SpeechRequestDto } from './speech.dto.js'

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
