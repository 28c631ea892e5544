import { Injectable } from '@nestjs/common'
import type { ProviderResponse } from '../core/byte-stream.js'
import { GatewayError } from '../core/errors.js'
import type { JsonBody } from '../core/json-body.js'
import type { RequestContext } from '../core/request-context.js'
import { JsonRelayService } from '../routing/json-relay.service.js'
import type { ChatRequestDto } from './chat.dto.js'
import { CHAT_COMPLETIONS } from './chat.endpoint.js'

/** The only audio format that can be streamed in chat (upstream's rule, known before anyone pays). */
const STREAMED_AUDIO_FORMAT = 'pcm16'

/** Chat completions on whatever provider serves the model. */
@Injectable()
export class ChatService {
  constructor(private readonly relay: JsonRelayService) {}

  complete(body: JsonBody<ChatRequestDto>, call: RequestContext): Promise<ProviderResponse> {
    call.log.model = body.fields.model
    assertAudioOutput(body.fields)
    return this.relay.respond(CHAT_COMPLETIONS, body, call)
  }
}

function assertAudioOutput({ modalities, audio, stream }: ChatRequestDto): void {
  if (modalities?.includes('audio') !== true) return
  if (audio == null) {
    throw new GatewayError('invalid_request', "Missing required parameter: 'audio' (modalities asks for audio).", {
      param: 'audio',
      code: 'missing_required_parameter',
    })
  }
  if (stream !== true || audio['format'] === STREAMED_AUDIO_FORMAT) return
  throw new GatewayError(
    'invalid_request',
    `Unsupported value: 'audio.format' must be '${STREAMED_AUDIO_FORMAT}' when stream is true.`,
    { param: 'audio.format', code: 'unsupported_value' },
  )
}
