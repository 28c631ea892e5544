import { Controller } from '@nestjs/common'
import type { ProviderResponse } from '../core/byte-stream.js'
import { JsonRelayService } from '../routing/json-relay.service.js'
import { Endpoint } from '../server/endpoint.decorator.js'
import { type JsonBodyRequest, JsonRequest } from '../server/json-request.js'
import { ModerationsRequestDto } from './moderations.dto.js'
import { MODERATIONS } from './moderations.endpoint.js'

@Controller()
export class ModerationsController {
  constructor(private readonly relay: JsonRelayService) {}

  @Endpoint(MODERATIONS)
  moderate(
    @JsonRequest(MODERATIONS, ModerationsRequestDto) { body, call }: JsonBodyRequest<ModerationsRequestDto>,
  ): Promise<ProviderResponse> {
    return this.relay.respond(MODERATIONS, body, call)
  }
}
