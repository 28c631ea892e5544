import { Controller } from '@nestjs/common'
import type { ProviderResponse } from '../core/byte-stream.js'
import { JsonRelayService } from '../routing/json-relay.service.js'
import { Endpoint } from '../server/endpoint.decorator.js'
import { type JsonBodyRequest, JsonRequest } from '../server/json-request.js'
import { EmbeddingsRequestDto } from './embeddings.dto.js'
import { EMBEDDINGS, EMBEDDINGS_BODY } from './embeddings.endpoint.js'

@Controller()
export class EmbeddingsController {
  constructor(private readonly relay: JsonRelayService) {}

  @Endpoint(EMBEDDINGS)
  embed(
    @JsonRequest(EMBEDDINGS, EmbeddingsRequestDto, EMBEDDINGS_BODY)
    { body, call }: JsonBodyRequest<EmbeddingsRequestDto>,
  ): Promise<ProviderResponse> {
    return this.relay.respond(EMBEDDINGS, body, call)
  }
}
