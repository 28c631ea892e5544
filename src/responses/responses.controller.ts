import { Controller, createParamDecorator } from '@nestjs/common'
import type { Request } from 'express'
import type { ProviderResponse } from '../core/byte-stream.js'
import type { RequestContext } from '../core/request-context.js'
import type { KeptResponseCall } from '../providers/contract.js'
import { Endpoint } from '../server/endpoint.decorator.js'
import { CurrentRequest, type JsonBodyRequest, JsonRequest } from '../server/json-request.js'
import { type FindResponseCall, findResponseQuery, keptResponseQuery, ResponsesRequestDto } from './responses.dto.js'
import {
  INPUT_TOKENS,
  RESPONSE_CANCEL,
  RESPONSE_DELETE,
  RESPONSE_FIND,
  RESPONSE_INPUT_ITEMS,
  RESPONSES,
} from './responses.endpoints.js'
import { ResponsesService } from './responses.service.js'

/** Id and query of a question about a response. */
const KeptResponse = createParamDecorator((_data, context): KeptResponseCall => {
  const { params, query } = context.switchToHttp().getRequest<Request>()
  return { id: String(params['id']), query: keptResponseQuery(query) }
})

/** The same of one that may ask for events. */
const FindResponse = createParamDecorator((_data, context): FindResponseCall => {
  const { params, query } = context.switchToHttp().getRequest<Request>()
  return { id: String(params['id']), ...findResponseQuery(query) }
})

@Controller()
export class ResponsesController {
  constructor(private readonly responses: ResponsesService) {}

  @Endpoint(RESPONSES)
  create(
    @JsonRequest(RESPONSES, ResponsesRequestDto) { body, call }: JsonBodyRequest<ResponsesRequestDto>,
  ): Promise<ProviderResponse> {
    return this.responses.create(body, call)
  }

  @Endpoint(INPUT_TOKENS)
  countInputTokens(
    @JsonRequest(INPUT_TOKENS, ResponsesRequestDto) { body, call }: JsonBodyRequest<ResponsesRequestDto>,
  ): Promise<ProviderResponse> {
    return this.responses.countInputTokens(body, call)
  }

  @Endpoint(RESPONSE_FIND)
  find(@FindResponse() kept: FindResponseCall, @CurrentRequest() call: RequestContext): Promise<ProviderResponse> {
    return this.responses.find(kept, call)
  }

  @Endpoint(RESPONSE_INPUT_ITEMS)
  inputItems(
    @KeptResponse() kept: KeptResponseCall,
    @CurrentRequest() call: RequestContext,
  ): Promise<ProviderResponse> {
    return this.responses.inputItems(kept, call)
  }

  @Endpoint(RESPONSE_CANCEL)
  cancel(@KeptResponse() kept: KeptResponseCall, @CurrentRequest() call: RequestContext): Promise<ProviderResponse> {
    return this.responses.cancel(kept, call)
  }

  @Endpoint(RESPONSE_DELETE)
  delete(@KeptResponse() kept: KeptResponseCall, @CurrentRequest() call: RequestContext): Promise<ProviderResponse> {
    return this.responses.delete(kept, call)
  }
}
