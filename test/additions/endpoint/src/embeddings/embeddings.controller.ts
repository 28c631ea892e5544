import { Controller } from '@nestjs/common'
import { ApiBearerAuth, ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger'
import type { ProviderResponse } from '../core/byte-stream.js'
import { ApiChatErrors } from '../dialects/error-docs.js'
import { JsonRelayService } from '../routing/json-relay.service.js'
import { Endpoint } from '../server/endpoint.decorator.js'
import { type JsonBodyRequest, JsonRequest } from '../server/json-request.js'
import { EmbeddingsRequestDto } from './embeddings.dto.js'
import { EMBEDDINGS } from './embeddings.endpoint.js'

@ApiTags('embeddings')
@ApiBearerAuth()
@Controller()
export class EmbeddingsController {
  constructor(private readonly relay: JsonRelayService) {}

  @Endpoint(EMBEDDINGS)
  @ApiOperation({ summary: 'Vectors of texts' })
  @ApiOkResponse({ description: 'A list of embedding objects' })
  @ApiChatErrors()
  embed(
    @JsonRequest(EMBEDDINGS, EmbeddingsRequestDto) { body, call }: JsonBodyRequest<EmbeddingsRequestDto>,
  ): Promise<ProviderResponse> {
    return this.relay.respond(EMBEDDINGS, body, call)
  }
}
